"""A set of hosts and of addresses below them, as lists have them.

hosts = BlockedHosts.of(["example.org", "0.0.0.0 ads.example.com", "shop.example.net/casino"])
hosts.find("https://www.example.org/a") -> "example.org"
hosts.find("https://shop.example.net/casino/1") -> "shop.example.net/casino"
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from foresail.curate.deduplicate.address import host_name, normalised

# what a line of a hosts file begins with: 0.0.0.0 example.org
HOSTS_FILE = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+(\S.*)")
OF_THE_MACHINE = frozenset(
    "localhost localhost.localdomain local broadcasthost 0.0.0.0 ip6-localhost ip6-loopback".split()
)
PLAIN_HOST = re.compile(r"[a-z0-9][a-z0-9.-]*[a-z0-9]")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
AFTER_PREFIX = frozenset("/?#&;")


@dataclass(frozen=True)
class BlockedHosts:
    """`hosts` block their subdomains too; `prefixes` of a host are beginnings of path and query."""

    hosts: frozenset[str]
    prefixes: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, entries: Iterable[str]) -> BlockedHosts:
        hosts: set[str] = set()
        prefixes: dict[str, set[str]] = {}
        for entry in entries:
            for host, path in parse_entry(entry):
                if path:
                    prefixes.setdefault(host, set()).add(path)
                else:
                    hosts.add(host)
        return cls(frozenset(hosts), {host: tuple(sorted(own)) for host, own in prefixes.items()})

    def find(self, url: str) -> str | None:
        """The entry that blocks the address."""
        host, path = split_address(url)
        name = host
        while name:
            if name in self.hosts:
                return name
            for prefix in self.prefixes.get(name, ()):
                if begins(path, prefix):
                    return name + prefix
            name = name.partition(".")[2]
        return None


def parse_entry(entry: str) -> list[tuple[str, str]]:
    """Hosts and paths of a line: a host, an address, or hosts after the address of a hosts file."""
    if PLAIN_HOST.fullmatch(entry):  # nearly all of a million
        return [(entry, "")]
    if match := HOSTS_FILE.fullmatch(entry):
        names = [host_name(name) for name in match[1].split()]
        return [(name, "") for name in names if name not in OF_THE_MACHINE]
    text = entry.removeprefix("||").removesuffix("^").removeprefix("*.").removeprefix(".")
    host, path = split_address(text if SCHEME.match(text) else f"http://{text}")
    return [(host, path if path != "/" else "")] if host else []


def split_address(url: str) -> tuple[str, str]:
    """split_address("HTTP://Example.org:80/a/../b?c=1") -> ("example.org", "/b?c=1")"""
    text = url.strip()
    try:
        parts = urlsplit(normalised(text if SCHEME.match(text) else f"http://{text}"))
        host = host_name(parts.hostname or "")
    except ValueError:  # http://[a
        return "", ""
    return host, parts.path + (f"?{parts.query}" if parts.query else "")


def begins(path: str, prefix: str) -> bool:
    """/casino begins /casino, /casino/1 and /casino?a, and not /casinos."""
    if not path.startswith(prefix):
        return False
    rest = path[len(prefix) :]
    return not rest or rest[0] in AFTER_PREFIX or not (prefix[-1].isalnum())
