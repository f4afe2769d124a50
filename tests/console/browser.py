"""A real Chromium, and what every page that it shows must keep to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright

ROOT: Final = Path(__file__).parents[2]
AXE: Final = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
WITHIN_MS: Final = 20_000
"""How long something may take to be on screen: a busy machine is no defect."""

expect.set_options(timeout=WITHIN_MS)

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_LOUD: Final = frozenset({"error", "warning"})
_SERIOUS: Final = frozenset({"serious", "critical"})


def chromium() -> str | None:
    """Debian's Chromium, or another that is on the path."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser that connects to nothing by itself."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class Screen:
    """How somebody looks at a page."""

    name: str
    width: int
    height: int
    scheme: str = "light"


DESK: Final = Screen("light", 1280, 900)
NIGHT: Final = Screen("dark", 1280, 900, "dark")
PHONE: Final = Screen("phone", 390, 844)


@dataclass
class Heard:
    """What a page said on its console, and what went wrong in it."""

    lines: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of lines that a test provokes."""

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in _LOUD:
            self.lines.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def fail(self, error: Any) -> None:
        self.lines.append(f"uncaught: {error}")

    def ask(self, dialog: Dialog) -> None:
        """The console opens none, but the browser does before unsaved work is left."""
        if dialog.type != "beforeunload":
            self.lines.append(f"{dialog.type}: {dialog.message}")
        dialog.accept()

    def unexpected(self) -> list[str]:
        return [line for line in self.lines if not any(part in line for part in self.expected)]


@contextmanager
def looking(browser: Browser, url: str, screen: Screen = DESK, *, zone: str = "Europe/Berlin") -> Iterator[Page]:
    """A page of a fresh visitor; whatever its console complains of fails the test."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": screen.width, "height": screen.height},
        color_scheme=screen.scheme,  # type: ignore[arg-type]  # light or dark
        timezone_id=zone,
        locale="en-GB",
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(WITHIN_MS)
    page = context.new_page()
    heard = Heard()
    page.on("console", heard.hear)
    page.on("pageerror", heard.fail)
    page.on("dialog", heard.ask)
    HEARD[page] = heard
    try:
        yield page
        said = heard.unexpected()
        assert not said, "The console said: " + "; ".join(said)
    finally:
        del HEARD[page]
        context.close()


HEARD: Final[dict[Page, Heard]] = {}


def expects(page: Page, *parts: str) -> None:
    """What this test provokes: the browser itself reports each answer that is no success."""
    HEARD[page].expected += parts


def sign_in(page: Page, token: str) -> None:
    """As a person does: the token is pasted into the form."""
    page.goto("/")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.locator("main#main").wait_for()


def go(page: Page, path: str) -> None:
    """To another page of the console, without losing the session."""
    page.evaluate("path => history.pushState(null, '', path)", path)


def settled(page: Page) -> None:
    """Once nothing is loading any more."""
    expect(page.get_by_role("status", name="Loading")).to_have_count(0, timeout=WITHIN_MS)
    page.evaluate("document.fonts.ready.then(() => true)")


def violations(page: Page) -> list[str]:
    """What axe-core finds that is serious."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in _SERIOUS
        for node in one["nodes"]
    ]


def taken_over(page: Page) -> list[str]:
    """Where text became part of the page: in the shadow of an editor, too."""
    found = [page.title()] if page.title() == "owned" else []
    return found + [one.evaluate("element => element.outerHTML") for one in page.locator("img[src=x]").all()]


_CRAMPED: Final = (Path(__file__).parent / "cramped.js").read_text()


def cramped(page: Page) -> list[str]:
    """Boxes that overflow, leave the page or overlap."""
    found: list[str] = page.evaluate(_CRAMPED)
    return found
