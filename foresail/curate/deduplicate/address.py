"""One form for all addresses of a page.

normalised("HTTPS://Example.org:443/a/../b%7ec/?utm_source=x&b=2&a=1#top") -> "https://example.org/b~c/?a=1&b=2"
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}
TRACKING = re.compile(
    r"(utm_\w+|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id|_hsenc|_hsmi|"
    r"_ga|_gl|phpsessid|jsessionid|aspsessionid\w*|sessionid|spm|scm|ref_src)",
    re.IGNORECASE,
)
SESSION_IN_PATH = re.compile(r";jsessionid=[^/?#]*", re.IGNORECASE)
ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
SPACE = re.compile(r"[\s\x00-\x20]")
LONGEST = 16_384  # characters; what is longer is no page's address


def normalised(url: str) -> str:
    """The same text if it is no address of the web."""
    stripped = SPACE.sub("%20", url.strip())
    if len(stripped) > LONGEST:
        return stripped
    try:
        parts = urlsplit(stripped)
        host, port = parts.hostname, parts.port
    except ValueError:  # [::, or port 99999
        return stripped
    scheme = parts.scheme.lower()
    if scheme not in PORTS or not host or not host.strip("."):
        return stripped
    place = host_name(host) + (f":{port}" if port not in (None, PORTS[scheme]) else "")
    path = without_dots(escaped(SESSION_IN_PATH.sub("", parts.path))) or "/"
    query = "&".join(
        sorted(part for part in escaped(parts.query).split("&") if part and not is_tracking(part))
    )
    fragment = parts.fragment if parts.fragment.startswith(("!", "/")) else ""  # a page drawn by a script
    return SplitResult(scheme, place, path, query, fragment).geturl()


def page_of(url: str) -> str:
    """The address without what seldom tells pages apart: http or https, www, a last slash."""
    text = normalised(url)
    text = re.sub(r"^https?://(www\.)?", "", text)
    path, mark, query = text.partition("?")
    return path.rstrip("/") + mark + query


def host_name(host: str) -> str:
    name = host.lower().rstrip(".")
    if ":" in name:
        return f"[{name}]"
    if not name.isascii():
        try:
            return name.encode("idna").decode()
        except UnicodeError:
            return name
    return name


def escaped(text: str) -> str:
    """%7e -> ~, %c3 -> %C3: what needs no escape has none, and hex digits are capital."""

    def one(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in UNRESERVED else match[0].upper()

    return ESCAPE.sub(one, text)


def without_dots(path: str) -> str:
    """/a/./b/../c -> /a/c"""
    kept: list[str] = []
    parts = path.split("/")
    for part in parts:
        if part == "..":
            if len(kept) > 1:
                kept.pop()
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", "..") and kept[-1:] != [""]:
        kept.append("")
    return "/".join(kept)


def is_tracking(part: str) -> bool:
    return TRACKING.fullmatch(part.partition("=")[0]) is not None
