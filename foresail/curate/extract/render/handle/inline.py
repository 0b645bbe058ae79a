"""Emphasis, links, and raised or lowered text."""

from __future__ import annotations

from foresail.curate.extract.render.lines import BREAK
from foresail.curate.extract.render.scripts import raised
from foresail.curate.extract.render.walker import Walker

PERMALINKS = frozenset(["¶", "#", "§", "🔗", "", "\uf0c1", "link", "Link", "Permalink", "[edit]", "Anchor"])


def strong(walker: Walker, node: int) -> int:
    return emphasize(walker, node, "**") if not walker.bold else node + 1


def em(walker: Walker, node: int) -> int:
    return emphasize(walker, node, "*") if not walker.italic else node + 1


def emphasize(walker: Walker, node: int, mark: str) -> int:
    if not (walker.rendering.markup and walker.rendering.emphasis):
        return node + 1
    pieces = walker.lines.pieces
    start, lines_before = len(pieces), len(walker.lines.done)
    if mark == "*":
        walker.italic += 1
    else:
        walker.bold += 1
    walker.close_at(node, lambda: end_emphasis(walker, mark, start, lines_before))
    return node + 1


def end_emphasis(walker: Walker, mark: str, start: int, lines_before: int) -> None:
    """Marks stand next to words: <b> a </b>b becomes " **a** b"."""
    if mark == "*":
        walker.italic -= 1
    else:
        walker.bold -= 1
    pieces = walker.lines.pieces
    if len(walker.lines.done) != lines_before or len(pieces) <= start:
        return
    text = "".join(pieces[start:])
    inner = text.strip()
    if inner and BREAK not in inner:
        head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        pieces[start:] = [f"{head}{mark}{inner}{mark}{tail}"]


def link(walker: Walker, node: int) -> int:
    page = walker.page
    end = page.ends[node]
    if (
        end <= node + 2
        and (walker.bold or "headerlink" in page.data[node] or "anchor" in page.data[node])
        and page.text(node).strip() in PERMALINKS
    ):
        return end
    if not (walker.rendering.links and walker.rendering.markup):
        return node + 1
    address = page.attribute(node, "href")
    if not address or address.startswith(("#", "javascript:")):
        return node + 1
    pieces = walker.lines.pieces
    start, lines_before = len(pieces), len(walker.lines.done)
    walker.close_at(node, lambda: end_link(walker, address, start, lines_before))
    return node + 1


def end_link(walker: Walker, address: str, start: int, lines_before: int) -> None:
    pieces = walker.lines.pieces
    if len(walker.lines.done) != lines_before or len(pieces) <= start:
        return
    text = "".join(pieces[start:])
    if text.strip() and BREAK not in text:
        pieces[start:] = [f"[{text}](", *link_address(walker, address)]


def link_address(walker: Walker, address: str) -> list[str]:
    lines = walker.lines
    lines.protected.append(address.replace(" ", "%20").replace(")", "%29"))
    return [f"\0{len(lines.protected) - 1};", ")"]


def superscript(walker: Walker, node: int) -> int:
    return raise_text(walker, node, "sup")


def subscript(walker: Walker, node: int) -> int:
    return raise_text(walker, node, "sub")


def raise_text(walker: Walker, node: int, kind: str) -> int:
    """x<sup>2</sup> becomes x²: without it the number would be another one."""
    page = walker.page
    end = page.ends[node]
    if end - node > 6:
        return node + 1
    if "a" in page.names[node + 1 : end]:
        text = page.text(node).strip()
        if text.isdecimal():  # a footnote's number does not belong to the word before it
            walker.lines.add(f"[{text}]")
            return end
        return node + 1
    small = raised(page.text(node), kind)
    if small is None:
        return node + 1
    walker.lines.add(small)
    return end


def image(walker: Walker, node: int) -> int:
    formula = walker.formulas.read(node)
    if formula is not None:
        walker.formula(formula)
    return node + 1
