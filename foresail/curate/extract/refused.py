"""What an extractor raises where a document cannot be read; its step makes a drop of it."""

from __future__ import annotations

from foresail.curate.document import Drop


class Refused(Exception):
    """The document cannot be read; it becomes a drop."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.drop = Drop(reason, detail)
