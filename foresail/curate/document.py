"""What passes through a curation pipeline: a document, and the reason for which one is dropped.

Document(id="web-0001:17", url="https://a.org/", text="Once upon a time …", metadata={"language": "en"})
Drop("too_short", "12 characters, at least 200 are required")
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """`content` is a page or file as it was read (HTML, PDF); a step that extracts turns it into `text`.

    `metadata` holds what JSON can: columns of the source, and what steps measured ("language", "quality").
    `row` is there where the document is a conversation or a problem (`rows/row.py`); its text then follows from it.
    """

    id: str
    text: str = ""
    url: str = ""
    content: bytes = b""
    media_type: str = "text/plain"
    metadata: dict[str, Any] = field(default_factory=dict)
    row: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """`reason` is one word and is counted; `detail` is of this document alone.

    `document`: what a step has made and does not let go on; default: the document as it came to the step.
    """

    reason: str
    detail: str = ""
    document: Document | None = None


def one_line(text: str, longest: int) -> str:
    """one_line("a  b\\nc", 4) -> "a b…": evidence for the detail of a drop."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
