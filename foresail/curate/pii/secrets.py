"""Secrets: private keys, access tokens, and names with passwords in addresses.

"https://ann:pw@host/" holds ann:pw. Whether a token is still valid is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.curate.pii.finding import AFTER, BEFORE, Finding, found

# Each has words that a text must hold before the pattern is tried. A digit is required: identifiers have none.
TOKENS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (words, re.compile(BEFORE + "(?<!-)" + pattern + AFTER, re.ASCII))
    for words, pattern in (
        (("AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA"), r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z2-7]{16}"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,255}"),
        (("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,255}"),
        (("glpat-",), r"glpat-[A-Za-z0-9_-]{20,64}"),
        (("sk-",), r"sk-(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,200}"),
        (("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{10,250}"),
        (("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
        (("hf_",), r"hf_[A-Za-z0-9]{30,40}"),
        (("_live_", "_test_"), r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
        (("npm_",), r"npm_[A-Za-z0-9]{36}"),
        (("eyJ",), r"eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,4000}"),
    )
)
# aws_secret_access_key = "…": known by its name alone
NAMED = re.compile(
    r"aws.{0,20}?(?:secret|private).{0,20}?[\"']?\s{0,4}(?:=>|[:=])\s{0,4}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    re.I | re.ASCII,
)
PASSWORD = re.compile(
    r"://([^\s/?#@:\[\]<>\"'`|\x1a]{1,64}:[^\s/?#@:\[\]<>\"'`|\x1a]{1,128})@(?=[A-Za-z0-9\[])", re.ASCII
)
KEY_ENDS = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
VARIABLES = "{$%*("  # "://$USER:$PASSWORD@host"
LONGEST_KEY = 20_000  # characters; a block without an end is left


def find_secrets(view: str) -> Iterator[Finding]:
    yield from key_blocks(view)
    for words, pattern in TOKENS:
        if any(word in view for word in words):
            yield from found("secret", pattern, view)
    if "aws" in view or "AWS" in view or "Aws" in view:
        yield from found("secret", NAMED, view, group=1)
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
