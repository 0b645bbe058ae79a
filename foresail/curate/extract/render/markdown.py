"""A page, or parts of it, as Markdown or plain text.

render(read_page("<h1>A</h1><ul><li>b<li>c</ul>"))   ->   "# A\\n\\n- b\\n- c"

The tree is walked once, without recursion: what an element opens is closed when the walk passes its end. Only the
cells of a table of data are walked on their own, and such a table holds no other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.handle.blocks import (
    block,
    heading,
    line_break,
    paragraph,
    quote,
    rule,
    skip,
)
from foresail.curate.extract.render.handle.code import code, pre
from foresail.curate.extract.render.handle.inline import em, image, link, strong, subscript, superscript
from foresail.curate.extract.render.handle.lists import definition, definitions, item, open_list, term
from foresail.curate.extract.render.handle.tables import layout_cell, table
from foresail.curate.extract.render.marks import Marks
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.render.walker import Handler, Walker

SKIPPED = frozenset(
    "script style template head title noscript svg canvas audio video object embed iframe map textarea select"
    " datalist input button option optgroup progress meter dialog link meta base frameset noframes rp".split()
)
PARAGRAPHS = frozenset(
    "p figure section article blockquote header footer main aside form details table".split()
)
BLOCKS = frozenset(
    "div address figcaption fieldset legend nav summary hgroup center tbody thead tfoot tr caption dir menu search"
    " optgroup body html xmp listing plaintext".split()
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}


def render(
    page: Page,
    roots: Sequence[int] = (0,),
    *,
    dropped: Collection[int] = frozenset(),
    headings: Mapping[int, str] | None = None,
    rendering: Rendering | None = None,
    marks: Marks | None = None,
) -> str:
    """The subtrees of `roots` in their order, without those of `dropped` (best a set).

    `headings` are lines to write before a node: what `post_headings` says of a post.
    """
    walker = Walker(page, dropped, headings or {}, rendering or Rendering(), HANDLERS, marks)
    walker.lines.asciimath = uses_asciimath(page)
    for root in roots:
        walker.walk(root, page.ends[root])
        walker.lines.flush(2)
    return walker.lines.text()


def uses_asciimath(page: Page) -> bool:
    """A script of the page turns backticks into formulas."""
    for at in (at for at, name in enumerate(page.names) if name == "script"):
        text = page.text(at)
        if "asciimath" in page.data[at].lower() or "AM_" in page.data[at]:
            return True
        if "asciimath2jax" in text or "input/asciimath" in text or "AMdelimiter" in text:
            return True
    return False


HANDLERS: Mapping[str, Handler] = (
    dict.fromkeys(SKIPPED, skip)
    | dict.fromkeys(BLOCKS, block)
    | dict.fromkeys(PARAGRAPHS, paragraph)
    | dict.fromkeys(HEADINGS, heading)
    | dict.fromkeys(("ul", "ol", "menu", "dir"), open_list)
    | dict.fromkeys(("strong", "b"), strong)
    | dict.fromkeys(("em", "i"), em)
    | dict.fromkeys(("code", "samp", "tt"), code)
    | dict.fromkeys(("pre", "listing", "xmp", "plaintext"), pre)
    | dict.fromkeys(("td", "th"), layout_cell)
    | {
        "br": line_break,
        "hr": rule,
        "li": item,
        "dl": definitions,
        "dt": term,
        "dd": definition,
        "blockquote": quote,
        "img": image,
        "a": link,
        "sup": superscript,
        "sub": subscript,
        "table": table,
    }
)
