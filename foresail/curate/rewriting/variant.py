"""One rewriting of a row on its way: the row with it, or why there is none.

variant = Variant(document, style)
variant.id -> "web:17~formal"
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.curate.document import Document, Drop
from foresail.curate.rewriting.styles import Style

BETWEEN = "~"  # a row's id and the style


@dataclass
class Variant:
    """One rewriting on its way; `document` is the row with it, or `drop` says why there is none."""

    source: Document
    style: Style
    document: Document | None = None
    drop: Drop | None = None

    @property
    def id(self) -> str:
        return f"{self.source.id}{BETWEEN}{self.style.name}"
