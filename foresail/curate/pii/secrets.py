"""Secrets: private keys, access tokens, and names with passwords in addresses.

"https://ann:pw@host/" holds ann:pw. Whether a token is still valid is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.curate.pii.finding import AFTER, BLANK, Finding, found

# What a token begins with, and the rest. Where a rest may be letters only, a digit is required: names have none.
STARTS: tuple[tuple[str, str], ...] = (
    *((start, r"[A-Z2-7]{16}") for start in ("AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA")),
    *((start, r"[A-Za-z0-9]{36,255}") for start in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    ("github_pat_", r"[A-Za-z0-9_]{22,255}"),
    ("glpat-", r"[A-Za-z0-9_-]{20,64}"),
    ("sk-", r"(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,200}"),
    ("xox", r"[abeoprs]-[A-Za-z0-9-]{10,250}"),
    ("AIza", r"[A-Za-z0-9_-]{35}"),
    ("hf_", r"[A-Za-z0-9]{30,40}"),
    *((f"{kind}k_{mode}_", r"[A-Za-z0-9]{16,255}") for kind in "rsp" for mode in ("live", "test")),
    ("npm_", r"[A-Za-z0-9]{36}"),
    ("eyJ", r"[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,4000}"),
)
# The search for what begins with letters is ten times faster than one for a border.
TOKENS = tuple(
    (start, re.compile(rf"{start}(?<![\w{BLANK}-]{start}){rest}{AFTER}", re.ASCII)) for start, rest in STARTS
)
# aws_secret_access_key = "…": known by its name alone
NAMED = tuple(
    (
        start,
        re.compile(
            start + r"(?i:.{0,20}?(?:secret|private).{0,20}?[\"']?\s{0,4}(?:=>|[:=])\s{0,4}[\"']?)"
            r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
            re.ASCII,
        ),
    )
    for start in ("aws", "AWS", "Aws")
)
PASSWORD = re.compile(
    r"://([^\s/?#@:\[\]<>\"'`|\x1a]{1,64}:[^\s/?#@:\[\]<>\"'`|\x1a]{1,128})@(?=[A-Za-z0-9\[])", re.ASCII
)
KEY_ENDS = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
VARIABLES = "{$%*("  # "://$USER:$PASSWORD@host"
LONGEST_KEY = 20_000  # characters; a block without an end is left


def find_secrets(view: str) -> Iterator[Finding]:
    yield from key_blocks(view)
    for start, pattern in TOKENS:
        if start in view:
            yield from found("secret", pattern, view)
    for start, pattern in NAMED:
        if start in view:
            yield from found("secret", pattern, view, group=1)
    if "://" in view:
        for match in PASSWORD.finditer(view):
            if match[1].partition(":")[2][0] not in VARIABLES:
                yield Finding("secret", *match.span(1))


def key_blocks(view: str) -> Iterator[Finding]:
    """A BEGIN that an END follows, not too far away."""
    start = -1
    for match in KEY_ENDS.finditer(view) if "PRIVATE KEY" in view else ():
        if match[1] == "BEGIN":
            start = match.start()
        elif start >= 0:
            if match.end() - start <= LONGEST_KEY:
                yield Finding("secret", start, match.end())
            start = -1
