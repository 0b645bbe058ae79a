"""Pages that are too much for a parser are refused before it begins.

check_page("<div>" * 100_000)       raises Refused("too_deep", …)

The parser goes up through the open elements at most tags, and compares each attribute of a tag with those before
it. So a page of 400 kB with 60,000 open elements takes it half a minute, and one tag with 100,000 attributes too.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate

from foresail.curate.extract.refused import Refused

MAX_TAGS = 1_000_000  # about 1 GB as lists; the longest pages of specifications have a third of it
MAX_STEPS = 100_000_000  # through open elements, or through attributes: about half a second
MAX_REPEATED = (
    2_000_000  # elements: "<font size=1><font size=2>…" is opened again in each paragraph that follows
)
HARMLESS = 14_000  # tags, which cannot make more steps than that
LONG = 2**10  # characters
LONG_PART = re.compile(rf">[^>]{{{LONG},}}")
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
OPENED = re.compile(r"<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)[\s>]", re.IGNORECASE)
FORMATTING = re.compile(r"<(/?)(b|big|code|em|font|i|s|small|strike|strong|tt|u)(\s[^>]*)?>", re.IGNORECASE)
QUOTED = re.compile("=\\s*(?:\"[^\"]*\"|'[^']*')")
NOT_OPEN = frozenset(
    # never closed
    "area base br col embed frame hr img input keygen link meta param source track wbr"
    # closed by the next of their kind
    " a body button dd dt h1 h2 h3 h4 h5 h6 head html li nobr optgroup option p rp rt tbody td tfoot th thead tr"
    # of drawings, where they end with "/>"
    " animate animatetransform circle ellipse image line path polygon polyline rect stop use"
    # in which tags are text
    " iframe noembed noframes script style textarea title xmp".split()
)


def check_page(html: str) -> None:
    """Raises Refused."""
    tags = html.count("<")
    if tags > 4 * MAX_TAGS:  # far too many, also if some are no tags: they are not even listed
        raise Refused("too_large", f"a page with {tags:,} “<”; {MAX_TAGS:,} tags are allowed")
    if tags > HARMLESS:
        check_depth(html)
    if len(OPENED.findall(html)) * tags > MAX_REPEATED:
        check_formatting(html, tags)
    if len(html) > LONG:
        check_attributes(html)


def check_depth(html: str) -> None:
    tags = TAG.findall(html)
    if len(tags) > MAX_TAGS:
        raise Refused("too_large", f"a page of {len(tags):,} tags; {MAX_TAGS:,} are allowed")
    changes = [0 if name.lower() in NOT_OPEN else -1 if slash else 1 for slash, name in tags]
    if changes.count(1) * len(changes) <= MAX_STEPS:
        return
    steps = sum(accumulate(changes, lambda depth, change: max(0, depth + change)))
    if steps > MAX_STEPS:
        depth = steps // len(changes)
        raise Refused("too_deep", f"{len(changes):,} tags, and {depth:,} open elements at each in the mean")


def check_formatting(html: str, tags: int) -> None:
    """Of elements that are the same, the parser repeats three."""
    depths: Counter[str] = Counter()
    deepest: Counter[str] = Counter()
    different: set[tuple[str, str]] = set()
    for slash, name, attributes in FORMATTING.findall(html):
        depth = depths[name] = max(0, depths[name] + (-1 if slash else 1))
        if depth > 3:
            deepest[name] = max(depth, deepest[name])
            different.add((name, attributes))
    repeated = min(deepest.total(), 3 * len(different))
    if repeated * tags > MAX_REPEATED:
        raise Refused("too_deep", f"{repeated:,} open elements of formatting, which {tags:,} tags may repeat")


def check_attributes(html: str) -> None:
    steps = 0
    for part in [html[: html.find(">")], *LONG_PART.findall(html)]:
        if (tag := TAG.search(part)) and len(part) - tag.start() > LONG:
            steps += len(QUOTED.sub(" ", part[tag.start() :]).split()) ** 2
    if steps > 2 * MAX_STEPS:
        raise Refused("damaged", f"tags with thousands of attributes; about {int(steps**0.5):,}")
