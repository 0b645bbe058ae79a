"""A parsed HTML page as four flat lists, in document order: what the main-content scorer and the renderer walk.

read_page('<p class="a">one<b>two</b></p>')  ->  names   ["html", "head", "body", "p", "", "b", ""]
                                                 data    ["", "", "", ' class="a"', "one", "", "two"]
                                                 parents [-1, 0, 0, 2, 3, 3, 5]
                                                 ends    [7, 2, 7, 7, 5, 7, 7]

A node is its number. Node i's subtree is range(i, ends[i]). A text has the empty name, and its text as data; an
element has its attributes as data, as the serialiser writes them. resiliparse parses (broken HTML, implied tags),
and the lists are made from its serialised tree: visiting a node of its DOM costs 3 to 10 µs, a node here costs 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from foresail.curate.extract.page_limits import check_page
from foresail.curate.extract.refused import Refused

VOID = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)
# In these the serialiser writes text as it is, so that "<" does not begin a tag.
RAW = re.compile(
    r"<!--.*?-->|<![^>]*>|<(script|style|iframe|noembed|noframes|xmp|plaintext)(?=[\s>])([^>]*)>(.*?)</\1>",
    re.DOTALL,
)
TAG = re.compile(r"<([^\s>]+)([^>]*)>([^<]*)")
ATTRIBUTE = re.compile(r' ([^\s=>]+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Page:
    names: list[str]
    data: list[str]
    parents: list[int]
    ends: list[int]

    def attribute(self, node: int, name: str) -> str:
        """Its value, or "". page.attribute(3, "class") -> "a" """
        attributes = self.data[node]
        start = attributes.find(f' {name}="')
        if start < 0:
            return ""
        start += len(name) + 3
        return unescape(attributes[start : attributes.find('"', start)])

    def attributes(self, node: int) -> dict[str, str]:
        return {name: unescape(value) for name, value in ATTRIBUTE.findall(self.data[node])}

    def children(self, node: int) -> Iterator[int]:
        child, end, ends = node + 1, self.ends[node], self.ends
        while child < end:
            yield child
            child = ends[child]

    def text(self, node: int) -> str:
        """All text below it, as the page has it: page.text(3) -> "onetwo" """
        end = self.ends[node]
        return "".join(
            text for name, text in zip(self.names[node:end], self.data[node:end], strict=True) if not name
        )


def read_page(html: str) -> Page:
    """Raises Refused where the page is too much for the parser."""
    check_page(html)
    from resiliparse.parse.html import HTMLParserException, HTMLTree

    try:
        document = HTMLTree.parse(html).document
    except HTMLParserException as error:
        raise Refused("damaged", str(error)[:200]) from error
    return flatten(document.html if document is not None else "")


def flatten(serialized: str) -> Page:
    """From a tree's serialised form: every tag is closed, and "<" stands in no attribute and no text."""
    names: list[str] = []
    data: list[str] = []
    parents: list[int] = []
    ends: list[int] = []
    parent = -1
    for name, attributes, text in TAG.findall(RAW.sub(escape_raw, serialized)):
        if name[0] == "/":
            if parent >= 0 and names[parent] == name[1:]:
                ends[parent] = len(names)
                parent = parents[parent]
        else:
            names.append(name)
            data.append(attributes)
            parents.append(parent)
            ends.append(len(names))
            if name not in VOID:
                parent = len(names) - 1
        if text:
            names.append("")
            data.append(unescape(text) if "&" in text else text)
            parents.append(parent)
            ends.append(len(names))
    while parent >= 0:
        ends[parent] = len(names)
        parent = parents[parent]
    return Page(names, data, parents, ends)


def escape_raw(match: re.Match[str]) -> str:
    """Comments and styles go. A script stays as one text: it may hold a formula, or data."""
    name, attributes, text = match.groups()
    if name is None or name == "style":
        return ""
    return f"<{name}{attributes}>{text.replace('&', '&amp;').replace('<', '&lt;')}</{name}>"


def unescape(text: str) -> str:
    """The five things that the serialiser escapes."""
    if "&" not in text:
        return text
    return (
        text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", "\xa0")
        .replace("&quot;", '"')
        .replace("&amp;", "&")
    )
