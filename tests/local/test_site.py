"""What a browser gets: the console's files, one document for all its pages, and nothing of what lies beside them."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from sweephand.local.site import Site
from tests.local.serving import ALLOWED, HEALTH, Echo, Heard, Serving, serving

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = "<!doctype html><title>Sweephand</title>" + "<p>The console.</p>" * 100
SCRIPT = "console.log('Sweephand');\n" * 100
SECRET = "what lies beside the site is nobody's business"
PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "manifest-src": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
}


def built(folder: Path) -> Path:
    """A site, as vite leaves one behind."""
    files = {
        "index.html": DOCUMENT,
        "favicon.svg": "<svg/>",
        "assets/index-BvE1x_-9.js": SCRIPT,
        "assets/index-D4f.css": "p { color: red }",
        ".hidden": SECRET,
        "assets/.hidden": SECRET,
    }
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("package")
    built(folder / "site")
    (folder / "secret.txt").write_text(SECRET)
    (folder / "site" / "link.txt").symlink_to(folder / "secret.txt")
    with serving(Echo(), site=Site(folder / "site")) as server:
        yield server


def page(server: Serving, path: str, method: str = "GET", **headers: str) -> Heard:
    """What a browser gets that goes to an address."""
    return server.ask(method, path, b"", accept=PAGE, **headers)


def assert_strict(headers: Mapping[str, str]) -> None:
    parts = (part.strip().partition(" ") for part in headers["content-security-policy"].split(";"))
    assert {name: value for name, _, value in parts} == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert not [name for name in headers if name.startswith("access-control-") or name in {"server", "set-cookie"}]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/jobs",
        "/jobs/daily.report/runs/20261115T060000Z.1",
        "/a/b?c=d",
        "/jobs/caf%C3%A9",
        "//jobs",
    ],
)
def test_every_page_is_the_same_document(shared: Serving, path: str) -> None:
    heard = page(shared, path)
    assert (heard.status, heard.body.decode()) == (200, DOCUMENT)
    assert heard.headers["content-type"] == "text/html; charset=utf-8"
    assert heard.headers["cache-control"] == "no-cache"
    assert_strict(heard.headers)
    assert page(shared, path, "HEAD").headers["content-length"] == str(len(DOCUMENT))


@pytest.mark.parametrize(
    ("path", "kind", "text"),
    [
        ("/assets/index-BvE1x_-9.js", "text/javascript; charset=utf-8", SCRIPT),
        ("/assets/index-D4f.css", "text/css; charset=utf-8", "p { color: red }"),
    ],
)
def test_what_is_named_by_its_content_is_kept_for_ever(shared: Serving, path: str, kind: str, text: str) -> None:
    heard = shared.ask("GET", path, accept="*/*")
    assert (heard.status, heard.headers["content-type"], heard.body.decode()) == (200, kind, text)
    assert heard.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert_strict(heard.headers)


def test_other_files_are_asked_for_again(shared: Serving) -> None:
    heard = shared.ask("GET", "/favicon.svg")
    assert (heard.status, heard.headers["content-type"], heard.body) == (200, "image/svg+xml", b"<svg/>")
    assert heard.headers["cache-control"] == "no-cache"
    assert_strict(heard.headers)


def test_nobody_needs_to_sign_in_elsewhere(shared: Serving) -> None:
    heard = shared.ask("GET", "/config.json")
    assert (heard.status, heard.document) == (200, {"signIn": None})
    assert heard.headers["content-type"] == "application/json"
    assert heard.headers["cache-control"] == "no-cache"
    assert_strict(heard.headers)


@pytest.mark.parametrize("path", ["/", "/assets/index-BvE1x_-9.js", "/config.json"])
@pytest.mark.parametrize("packing", ["identity", "br, gzip"])
def test_who_has_it_is_told_so(shared: Serving, path: str, packing: str) -> None:
    tag = page(shared, path, accept_encoding=packing).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        heard = page(shared, path, accept_encoding=packing, if_none_match=known)
        assert (heard.status, heard.body, heard.headers["etag"]) == (304, b"", tag)
        assert_strict(heard.headers)
    assert page(shared, path, accept_encoding=packing, if_none_match='"other"').status == 200


def test_who_can_unpack_it_gets_it_packed(shared: Serving) -> None:
    plain = shared.ask("GET", "/assets/index-BvE1x_-9.js", accept_encoding="gzip;q=0, br")
    packed = shared.ask("GET", "/assets/index-BvE1x_-9.js", accept_encoding="gzip, deflate, br")
    assert gzip.decompress(packed.body) == plain.body == SCRIPT.encode()
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.headers["etag"] != plain.headers["etag"]
    assert "content-encoding" not in shared.ask("GET", "/favicon.svg", accept_encoding="gzip").headers


@pytest.mark.parametrize(
    "path",
    [
        *("/api", "/api/", "/api/v1/jobs", "/API/v1/jobs", "//api/v1/jobs", "/%61pi/v1/jobs", "/aPi%2fv1", "/api%2Fv1"),
        *("/live", "/LIVE/", "//live", "/l%69ve", "/\\api/v1/jobs", "/x/../api/v1/jobs", "/./api/v1/jobs"),
        *("/x/%2e%2e/api/v1/jobs", "/%2fapi/v1/jobs", "/api.html", "/liveness", "*", "http://127.0.0.1/"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_looks_like_the_api_is_no_page_and_needs_a_token(shared: Serving, method: str, path: str) -> None:
    heard = page(shared, path, method)
    assert heard.status == 401
    assert method == "HEAD" or heard.is_problem


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/config.json", "/assets/index-D4f.css", "/jobs"])
def test_pages_and_files_are_only_read(shared: Serving, method: str, path: str) -> None:
    assert page(shared, path, method, authorization="Bearer nobody").status == 401
    assert page(shared, path, method, authorization=ALLOWED).status == 404


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "text/html;q=0, */*", "text/htmlx"])
def test_who_asks_for_no_page_gets_none(shared: Serving, accept: str) -> None:
    for path in ("/", "/jobs", "/assets/gone.js"):
        assert shared.ask("GET", path, accept=accept).status == 401
        assert shared.ask("GET", path, accept=accept, authorization=ALLOWED).status == 404
    assert shared.ask(*HEALTH, accept=PAGE).status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/%2e%2e%2fsecret.txt", "/..\\secret.txt"),
        *("/assets/../../secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/assets/..%5c..%5csecret.txt", "/link.txt"),
        *("/.hidden", "/assets/.hidden", "/assets/%2ehidden", "/assets/", "/assets", "/%00", "/secret.txt%00.js"),
        *("//secret.txt", "/%252e%252e%252fsecret.txt", "/C:/secret.txt", "/assets//index-D4f.css", "/\u0000"),
    ],
)
def test_nothing_beside_the_site_is_read_and_no_folder_is_listed(shared: Serving, path: str) -> None:
    for heard in (shared.ask("GET", path, accept="*/*"), page(shared, path)):
        assert heard.status in {200, 400, 401}
        assert SECRET.encode() not in heard.body
        assert b"index-D4f" not in heard.body
        assert heard.status != 200 or heard.body.decode() == DOCUMENT


def test_another_host_gets_nothing(shared: Serving) -> None:
    for path in ("/", "/config.json", "/assets/index-D4f.css"):
        heard = page(shared, path, host="elsewhere.example")
        assert (heard.status, heard.is_problem) == (403, True)


def test_without_a_built_site_a_page_says_how_to_build_it(tmp_path: Path) -> None:
    with serving(Echo(), site=Site(tmp_path / "site")) as server:
        heard = page(server, "/jobs")
        assert (heard.status, heard.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert heard.body == b"The console was not built: `make console` builds it.\n"
        assert_strict(heard.headers)
        assert server.ask("GET", "/").status == 401
        assert server.ask("GET", "/config.json").status == 200


def test_what_is_built_anew_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    with serving(Echo(), site=Site(folder)) as server:
        assert page(server, "/").status == 503
        built(folder)
        first = page(server, "/")
        (folder / "index.html").write_text("anew")
        os.utime(folder / "index.html", ns=(1, 1))
        assert page(server, "/", if_none_match=first.headers["etag"]).body == b"anew"
        (folder / "assets" / "index-D4f.css").unlink()
        assert server.ask("GET", "/assets/index-D4f.css").status == 401


def test_a_server_without_a_site_has_no_pages() -> None:
    with serving(Echo()) as server:
        assert page(server, "/").status == 401


def test_the_wheel_holds_the_built_site_although_git_ignores_it(tmp_path: Path) -> None:
    package = "layers/core/python/sweephand"
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / package / "local").mkdir(parents=True)
    (tmp_path / package / "__init__.py").write_text('__version__ = "1.2.3"\n')
    built(tmp_path / package / "local" / "site")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with ZipFile(wheel) as opened:
        assert {"sweephand/local/site/index.html", "sweephand/local/site/assets/index-D4f.css"} <= {*opened.namelist()}
