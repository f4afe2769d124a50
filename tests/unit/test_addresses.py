"""Where requests may go: every spelling of a place that is nobody's business is refused."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.addresses import NOWHERE, Allowed, check_written_url, parse_address, parse_url
from sweephand.domain.kinds import http_within, read_step
from sweephand.errors import InvalidInput

METADATA = ["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16"]
NOBODYS = ["0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "255.255.255.255"]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.1.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
]
REFUSED_V6 = [
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",  # IPv4-translated
    "0:0:0:0:0:ffff:10.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",  # Teredo
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "9.255.255.255", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255"]
PUBLIC_V6 = ["2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]


def why_not(url: str, allowed: Allowed = NOWHERE) -> str | None:
    """How a literal URL is refused, or None."""
    try:
        check_written_url(url, "url", allowed)
    except InvalidInput as refused:
        return f"{refused.path} {refused.message}".removeprefix("url ")
    return None


@pytest.mark.parametrize("address", [*METADATA, *NOBODYS, *PRIVATE])
def test_an_address_that_is_not_public_is_refused_in_every_form(address: str) -> None:
    mapped = IPv6Address(f"::ffff:{address}")
    for host in (
        address,
        f"{address}.",
        f"{address}:8080",
        f"[{mapped}]",
        f"[{mapped.exploded}]",
        f"[::ffff:{address}]:443",
        f"[64:ff9b::{address}]",
    ):
        for scheme in ("http", "https", "HTTP"):
            message = why_not(f"{scheme}://{host}/path")
            assert message is not None, host
            assert message.startswith("Requests may not go to"), message


@pytest.mark.parametrize("address", REFUSED_V6)
def test_an_ipv6_address_that_is_not_public_is_refused(address: str) -> None:
    assert why_not(f"http://[{address}]/")
    assert why_not(f"http://[{IPv6Address(address).exploded.upper()}]:81/")


@pytest.mark.parametrize("host", [*PUBLIC, *(f"[{one}]" for one in PUBLIC_V6), "example.org", "a_b.example.org."])
def test_public_addresses_and_names_are_taken(host: str) -> None:
    assert why_not(f"https://{host}/") is None


SPELLINGS = [
    "2130706433",
    "0x7f000001",
    "0x7F.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "127.0.0.01",
    "127.0.0.0x1",
    "127.0.0.1.",
    "127.0.0.1..",
    "00000000000000000000000000177.0.0.1",
    "0",
    "0x",
    "256.0.0.1",
    "1.2.3.4.5",
    "１２７.０.０.１",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "127．0．0．1",
    "127｡0｡0｡1",
    "%31%32%37.0.0.1",
    "127.0.0.1%00",
    "127.0.0.1%2f@example.org",
    "[::1%25lo]",
    "[::1%lo]",
    "[fe80::1%eth0]",
    "[::1",
    "::1",
    "[127.0.0.1]",
    "[::ffff:0x7f.1]",
    "[]",
    "",
    ".",
    "..",
    "-a.example",
    "a..example",
    "exa mple.org",
    "example.org\\@127.0.0.1",
    "127.0.0.1\\.example.org",
    "user@127.0.0.1",
    "user:password@example.org",
    "@example.org",
    "example.org:0",
    "example.org:65536",
    "example.org:99999999999999999999",
    "example.org:-1",
    "example.org:８０",
    "example.org:80:80",
    "example.c℀.org",
    "a" * 64 + ".example",
    "a." * 127 + "example",
]


@pytest.mark.parametrize("authority", SPELLINGS)
def test_a_host_is_spelt_in_one_way_only(authority: str) -> None:
    assert why_not(f"http://{authority}/")


@pytest.mark.parametrize("authority", ["１２７.０.０.１", "①②⑦.⓪.⓪.①", "127。0。0。1", "[::FFFF:7F00:1]"])
def test_what_becomes_an_address_is_judged_as_one(authority: str) -> None:
    message = why_not(f"http://{authority}/")
    assert message is not None
    assert "loopback" in message


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "file://example.org/etc/passwd",
        "gopher://example.org:70/_x",
        "ftp://example.org/",
        "data:text/plain,hello",
        "javascript:alert(1)",
        "dict://example.org:11211/stat",
        "unix:///var/run/docker.sock",
        "http:example.org",
        "http:/example.org",
        "//example.org/",
        "https//example.org",
        " http://example.org/",
        "http://example.org/\r\nX-Injected: 1",
        "http://example.org/\nGET / HTTP/1.1",
        "http://exam\tple.org/",
        "http://example.org/\x00",
        "http://example.org/\u2028",
    ],
)
def test_other_schemes_and_line_breaks_are_refused_when_it_is_saved(url: str) -> None:
    assert why_not(url)
    with pytest.raises(InvalidInput) as refused:
        read_step({"http": {"url": url}}, "run")
    assert refused.value.path == "run.http.url"


@pytest.mark.parametrize("address", [*METADATA, *NOBODYS, "::", "fd00:ec2::254", "::ffff:169.254.169.254", "ff02::1"])
def test_nothing_allows_metadata_and_addresses_of_nobody(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    everything = Allowed.parse(["0.0.0.0/0", "::/0", "metadata.internal"], "allowed")
    assert why_not(f"http://{host}/", everything)
    with pytest.raises(InvalidInput):
        read_step({"http": {"url": f"http://{host}/"}}, "run")
    url = parse_url("http://metadata.internal/")
    assert everything.why_not(url, ip_address(address))
    with pytest.raises(InvalidInput, match=r"cannot be allowed|write it as those"):
        Allowed.parse([address], "allowed")


@pytest.mark.parametrize(
    ("rule", "reached", "unreached"),
    [
        ("127.0.0.1", ["127.0.0.1:1", "127.0.0.1:80", "[::ffff:127.0.0.1]"], ["127.0.0.2", "[::1]"]),
        ("127.0.0.1/32", ["127.0.0.1:8080"], ["10.0.0.1"]),
        ("10.1.0.0/16", ["10.1.0.0", "10.1.255.255:8443"], ["10.2.0.1"]),
        ("10.1.0.0/16:8443", ["10.1.2.3:8443"], ["10.1.2.3", "10.1.2.3:443"]),
        ("::1", ["[::1]:8080"], ["127.0.0.1"]),
        ("[fd12::/16]:443", ["[fd12::1]:443"], ["[fd12::1]", "[fd13::1]:443"]),
    ],
)
def test_a_place_allows_networks_on_all_ports_or_on_one(rule: str, reached: list[str], unreached: list[str]) -> None:
    allowed = Allowed.parse([f" {rule} "], "allowed")
    assert [host for host in reached if why_not(f"http://{host}/", allowed)] == []
    assert [host for host in unreached if not why_not(f"http://{host}/", allowed)] == []


def test_a_place_allows_a_host_whatever_its_address_is() -> None:
    allowed = Allowed.parse(["Billing.Internal:8443", "localhost"], "allowed")
    inside = IPv4Address("10.0.0.7")
    assert allowed.why_not(parse_url("https://billing.internal:8443/"), inside) == ""
    assert allowed.why_not(parse_url("https://BILLING.internal.:8443/"), inside) == ""
    assert allowed.why_not(parse_url("https://billing.internal/"), inside)
    assert allowed.why_not(parse_url("https://other.internal:8443/"), inside)
    assert allowed.why_not(parse_url("http://localhost:9/"), IPv6Address("::1")) == ""


@pytest.mark.parametrize(
    "rule",
    ["10.1.2.3/16", "10.0.0.0/33", "0177.0.0.1", "2130706433", "a b", "*", "https://a", "a:0", "a:b", "fd12::/8:1"],
)
def test_a_rule_that_means_nothing_is_refused(rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Allowed.parse([rule], "http-may-reach")
    assert refused.value.path == "http-may-reach"


def test_there_is_a_bound_on_rules() -> None:
    assert Allowed.parse(["", " "], "allowed") == NOWHERE
    with pytest.raises(InvalidInput):
        Allowed.parse(["10.0.0.1"] * 101, "allowed")


@pytest.mark.parametrize("userinfo", ["user", "user:password", "", "a@b", "127.0.0.1:80"])
def test_a_user_in_a_url_is_refused_with_the_way_to_do_it(userinfo: str) -> None:
    message = why_not(f"https://{userinfo}@example.org/")
    assert message is not None
    assert "use a header" in message


def test_a_url_is_taken_apart_and_put_together_again() -> None:
    url = parse_url("HTTPS://Bücher.Example.:8443/a b/é?q=ü&x=%20#part")
    assert (url.scheme, url.host, url.port) == ("https", "xn--bcher-kva.example", 8443)
    assert url.target == "/a%20b/%C3%A9?q=%C3%BC&x=%20"
    assert url.authority == "xn--bcher-kva.example:8443"
    assert str(url) == "https://xn--bcher-kva.example:8443/a%20b/%C3%A9?q=%C3%BC&x=%20"
    assert parse_url(str(url)) == url
    assert str(parse_url("http://example.org")) == "http://example.org/"
    assert str(parse_url("http://example.org:80?q=a@b")) == "http://example.org/?q=a@b"
    assert parse_url("https://[2606:4700::1]:443/").authority == "[2606:4700::1]"


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("http://10.0.0.1/${params.a}", True),
        ("http://10.0.0.1?a=${params.a}", True),
        ("http://user@example.org/${params.a}", True),
        ("http://2130706433/${params.a}", True),
        ("https://example.org/${params.a}", False),
        ("${params.url}", False),
        ("http://${params.host}/", False),
        ("http://10.0.0.${params.last}/", False),
        ("http://10.0.0.1:${params.port}/", False),
    ],
)
def test_of_a_url_with_templates_what_is_written_is_judged(url: str, is_refused: bool) -> None:
    assert bool(why_not(url)) == is_refused


def test_a_step_is_read_by_what_its_place_allows() -> None:
    step = {"http": {"url": "http://10.1.2.3/"}}
    assert read_step(step, "run") == ("http", step["http"])
    with pytest.raises(InvalidInput) as refused:
        read_step(step, "run", operators={"http": http_within(NOWHERE)})
    assert refused.value.path == "run.http.url"
    allowed = Allowed.parse(["10.1.0.0/16"], "allowed")
    assert read_step(step, "run", operators={"http": http_within(allowed)})[0] == "http"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "a"},
        {"HOST": "a"},
        {"content-length": "1"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "upgrade"},
        {"Idempotency-Key": "mine"},
        {"Sweephand-Job": "another"},
        {"sweephand-": ""},
        {"Bad Name": ""},
        {"Bad:Name": ""},
        {"": ""},
        {"A\r\nB": ""},
        {"A": "b\r\nC: d"},
        {"A": "b\n c"},
        {"A": "b\x00"},
        {"A": "é"},
        {"A": "x" * 8_193},
    ],
)
def test_headers_that_are_ours_or_break_lines_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_step({"http": {"url": "https://example.org/", "headers": headers}}, "run")
    assert refused.value.path.startswith("run.http.headers.")


# Whatever an address looks like.

INSIDE = st.sampled_from([IPv4Network(f"{one}/24", strict=False) for one in [*METADATA[:2], *NOBODYS, *PRIVATE]])
V4 = INSIDE.flatmap(lambda network: st.integers(0, 255).map(lambda last: network.network_address + last))


def _spellings(address: IPv4Address) -> list[str]:
    number, (a, b, c, d) = int(address), address.packed
    wide = str(address).translate({ord("0") + n: 0xFF10 + n for n in range(10)})
    return [
        str(address),
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"{a:03}.{b:03}.{c:03}.{d:03}",
        f"{address}.",
        wide,
        wide.replace(".", "\u3002"),
        quote(str(address), safe="").replace(".", "%2E"),
        "".join(f"%{byte:02x}" for byte in str(address).encode()),
        f"[::ffff:{address}]",
        f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]",
        f"[0:0:0:0:0:FFFF:{address}]",
        f"[::{number >> 16:x}:{number & 0xFFFF:x}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::1]",
        f"[2001:0:{number >> 16:x}:{number & 0xFFFF:x}::]",
    ]


@given(V4, st.sampled_from(["", ":80", ":8080"]), st.sampled_from(["http", "https"]))
def test_no_spelling_of_a_private_address_is_taken(address: IPv4Address, port: str, scheme: str) -> None:
    for host in _spellings(address):
        assert why_not(f"{scheme}://{host}{port}/"), host


@given(st.ip_addresses(v=4).map(str) | st.from_regex(r"[0-9a-fx.]{1,20}", fullmatch=True))
def test_what_a_resolver_reads_as_an_address_is_read_as_the_same_here_or_refused(host: str) -> None:
    try:
        packed = socket.inet_aton(host)
    except OSError:
        return
    try:
        found = parse_address(host)
    except InvalidInput:
        return
    assert found == IPv4Address(packed)


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_is_read_as_itself_and_only_public_ones_are_taken(address: IPv6Address) -> None:
    assert parse_address(f"[{address}]") == address
    if not why_not(f"http://[{address}]/"):
        embedded = address.ipv4_mapped or IPv4Address(int(address) & 0xFFFF_FFFF)
        assert address.is_global or embedded.is_global


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_that_is_taken_is_global(address: IPv4Address) -> None:
    if not why_not(f"http://{address}/"):
        assert address.is_global


@given(st.text(max_size=40))
def test_any_text_is_a_url_or_refused_and_what_is_sent_has_no_breaks(text: str) -> None:
    for written in (text, f"http://{text}", f"https://example.org/{text}"):
        try:
            url = parse_url(written)
        except InvalidInput:
            continue
        assert url.host.isascii()
        assert url.target.isascii()
        assert url.target.isprintable()
        assert " " not in url.target
        assert parse_url(str(url)) == url
