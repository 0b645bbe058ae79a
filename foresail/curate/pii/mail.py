"""E-mail addresses: "(mailto:ann.b+news@mail.example.org)." holds ann.b+news@mail.example.org."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from foresail.curate.pii.finding import Finding

NAME = string.ascii_letters + string.digits + "._%+-'"
HOST = string.ascii_letters + string.digits + ".-"
LONGEST_NAME, LONGEST_HOST = 64, 255
LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.I)
LAST_LABEL = re.compile(r"[a-z]{2,24}|xn--[a-z0-9-]{2,59}", re.I)
# icon@2x.png, index@latest.js; git@github.com is no person
FILES = frozenset(
    "avif css gif gz htm html ico jpeg jpg js json jsx map mjs pdf png svg ts tsx webp zip".split()
)
PROGRAMS = frozenset(("git", "hg", "svn"))


def find_mail(view: str) -> Iterator[Finding]:
    end, at = 0, view.find("@")
    while at >= 0:
        start = name_start(view, at, end)
        stop = host_end(view, at + 1) if start < at else 0
        if stop and view[start:at] not in PROGRAMS:
            yield Finding("email", start, stop)
            end = stop
        at = view.find("@", max(at + 1, end))


def name_start(view: str, at: int, behind: int) -> int:
    """Where the name before the @ begins; `at` if there is none."""
    if view[at - 1 : at] not in NAME:
        return at
    window = view[max(behind, at - LONGEST_NAME - 1) : at]
    name = window[len(window.rstrip(NAME)) :]
    if len(name) > LONGEST_NAME or name.endswith("."):
        return at
    return at - len(name.lstrip(".'-%"))


def host_end(view: str, start: int) -> int:
    """Where the host that begins at `start` ends; 0 if there is none."""
    window = view[start : start + LONGEST_HOST + 1]
    host = window[: len(window) - len(window.lstrip(HOST))]
    if len(host) > LONGEST_HOST:
        return 0
    labels: list[str] = []
    for label in host.split("."):
        if LABEL.fullmatch(label) is None:
            label = label.rstrip("-")  # "x@a.org--no": the address ends before the dashes
            labels += [label] if LABEL.fullmatch(label) else []
            break
        labels.append(label)
    while labels and LAST_LABEL.fullmatch(labels[-1]) is None:
        labels.pop()
    if len(labels) < 2 or labels[-1].lower() in FILES:
        return 0
    return start + len(".".join(labels))
