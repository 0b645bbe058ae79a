"""Pages that show their text only to browsers without scripts (Discourse's forums): their <noscript> is opened."""

from __future__ import annotations

from foresail.curate.extract.page import Page

HIDDEN = frozenset(("script", "style", "template", "noscript"))
SHORTEST = 200  # characters worth opening it


def open_noscript(page: Page) -> None:
    """A <noscript> with more text than all that is shown becomes a <div>, in place."""
    if "noscript" not in page.names:
        return
    names, ends = page.names, page.ends
    shown, node, folded = 0, 0, []
    while node < len(names):
        name = names[node]
        if name in HIDDEN:
            if name == "noscript":
                folded.append(node)
            node = ends[node]
            continue
        if not name:
            shown += len(page.data[node].strip())
        node += 1
    for node in folded:
        size = sum(len(page.data[at].strip()) for at in range(node, ends[node]) if not names[at])
        if size > max(SHORTEST, shown) and "p" in names[node : ends[node]]:
            names[node] = "div"
