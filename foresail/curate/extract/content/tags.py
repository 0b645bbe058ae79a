"""Names of elements as small numbers, and what they do to text."""

from __future__ import annotations

from foresail.curate.extract.render.markdown import BLOCKS, HEADINGS, PARAGRAPHS, SKIPPED

INLINE, BLOCK, UNSEEN, TEXT, LINK, SOLID = range(6)

KNOWN = (
    "p div span li ul ol a h1 h2 h3 h4 h5 h6 td th tr table tbody dl dt dd pre code blockquote figure figcaption"
    " article section main nav header footer aside form details summary address label button time strong b em i"
    " small sup sub img br hr center fieldset legend caption cite q html body title head meta script style math"
    " font iframe thead tfoot menu dir search hgroup"
).split()
NUMBERS = {name: number for number, name in enumerate(KNOWN)}
OTHER = len(KNOWN)
KINDS = (
    dict.fromkeys(
        PARAGRAPHS | BLOCKS | set(HEADINGS) | {"ul", "ol", "li", "dl", "dt", "dd", "td", "th", "hr"}, BLOCK
    )
    | dict.fromkeys(SKIPPED | {"script"}, UNSEEN)
    | {"pre": SOLID, "": TEXT, "a": LINK}
)

# Of a name: its place in a table of numbers and kinds.
NAMES = (*KNOWN, *(name for name in KINDS if name and name not in NUMBERS))
PLACES = {name: place for place, name in enumerate(NAMES)} | {"": len(NAMES)}
UNKNOWN = len(NAMES) + 1
NUMBER_AT = [*range(OTHER), *[OTHER] * (len(NAMES) - OTHER), -1, OTHER]  # a text has -1
KIND_AT = [*(KINDS.get(name, INLINE) for name in NAMES), TEXT, INLINE]
