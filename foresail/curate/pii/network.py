"""IP addresses that may be somebody's: not private, loopback, documentation or multicast ones, and no versions.

"from 93.184.216.34" and "2606:2800:220:1::93" are found; "version 3.12.1.4", "192.168.0.1", "2001:db8::1" are not.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from foresail.curate.pii.context import words_before
from foresail.curate.pii.finding import BLANK, Finding

OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
V4 = re.compile(rf"(?<![\w.{BLANK}])(?<!\d[-,]){OCTET}(?:\.{OCTET}){{3}}(?!\.?[\w{BLANK}]|-\w)", re.ASCII)
V6 = re.compile(rf"(?<![\w.{BLANK}])[\da-f:]{{7,45}}(?![\w{BLANK}]|\.\w)", re.ASCII | re.I)
GLOBAL_V6 = re.compile(r"[23][\da-f]{3}:", re.I)
SMALL = 32  # 1.2.3.4, 2.0.12.1: a version or a section, unless a word says otherwise
HOSTS = re.compile(r"(?<![a-z])(?:ip|ipv4|address|alamat|host|server|ping|dns|from)(?![a-z])|://\Z", re.I)
VERSIONS = re.compile(
    r"(?<![a-z])(?:v|ver|versi|version|vers[aã]o|release|rilis|build|firmware|driver|kernel|section|sec|chapter|"
    r"phi[eê]n b[aả]n|oid)(?![a-z])|版本|เวอร์ชัน|§",
    re.I,
)


def find_addresses(view: str) -> Iterator[Finding]:
    for match in V4.finditer(view):
        if is_public(match[0]) and not is_version(view, match):
            yield Finding("ip", *match.span())
    if ":" in view:
        for match in V6.finditer(view):
            yield from address_of(match)


def address_of(match: re.Match[str]) -> Iterator[Finding]:
    """In "a:2606::93:" the address has neither the word before nor the colon behind."""
    text = match[0] if match[0].endswith("::") else match[0].rstrip(":")
    end = match.start() + len(text)
    for start in (match.start(), match.start() + text.find(":") + 1):
        part = match.string[start:end]
        if GLOBAL_V6.match(part) and is_public(part):
            yield Finding("ip", start, end)
            return


def is_public(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast


def is_version(view: str, match: re.Match[str]) -> bool:
    before = words_before(view, match.start())
    if VERSIONS.search(before):
        return True
    return max(map(int, match[0].split("."))) < SMALL and HOSTS.search(before) is None
