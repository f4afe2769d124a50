"""`make screenshots`: a picture of each page, by day, by night and on a phone, in docs/images."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.console.browser import DESK, NIGHT, PHONE, ROOT, go, launched, looking, settled, sign_in
from tests.console.places import furnish
from tests.console.server import served

IMAGES: Final = ROOT / "docs" / "images"


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server, launched() as browser:
        places = furnish(server)
        for screen in (DESK, NIGHT, PHONE):
            with looking(browser, server.url, screen) as page:
                page.screenshot(path=IMAGES / f"sign-in-{screen.name}.png")
                sign_in(page, server.token)
                for name, path in places.items():
                    go(page, path)
                    page.locator("main h1, main h2").first.wait_for()
                    settled(page)
                    page.screenshot(path=IMAGES / f"{name}-{screen.name}.png", animations="disabled")
                    print(f"{name}-{screen.name}.png")


if __name__ == "__main__":
    main()
