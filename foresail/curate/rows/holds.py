"""What a source holds: documents, or rows of which each is a conversation or a problem.

A step says what it takes and, where it makes something else of it, what it gives:

    class CapResponses(Part):
        takes: ClassVar[Holds] = ("conversations",)

Built-in steps that say nothing take documents. One that only reads the text, and does not change it, takes ANY.
"""

from __future__ import annotations

from typing import Literal

Held = Literal["documents", "conversations", "problems"]
Holds = tuple[Held, ...]
DOCUMENTS: Holds = ("documents",)
ROWS: Holds = ("conversations", "problems")
ANY: Holds = (*DOCUMENTS, *ROWS)
