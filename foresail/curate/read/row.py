"""A row of JSONL or parquet as a document: which column is the text, the id, the address; all others are metadata.

row_document({"text": "Once …", "id": "a1", "lang": "en"}, "web/a.jsonl:17", source)
    -> ("a1", Document(id="a1", text="Once …", metadata={"lang": "en"}))
"""

from __future__ import annotations

import math
from typing import Any

from foresail.curate.document import Document, Drop
from foresail.curate.read.piece import Source
from foresail.curate.rows.row import read_row
from foresail.data.corpus.documents import KEYS
from foresail.data.files import excerpt

MOST_VALUES = 1_000_000  # in lists and objects of one row
LONGEST_ID = 512  # characters
DEEPEST = 64  # lists in lists: writers of JSON give up at 250
LARGEST = 2**63


def row_document(row: Any, place: str, source: Source) -> tuple[str, Document | Drop]:
    if isinstance(row, str) and source.text_key is None:
        row = {"text": row}
    if not isinstance(row, dict):
        return place, Drop("not_object", excerpt_of(row))
    try:
        row = plain(row, Room(MOST_VALUES))
    except TooMany:
        return place, Drop("too_large", f"a row of more than {MOST_VALUES:,} values")
    id, id_key = row_id(row, place, source.id_key)
    if source.holds != "documents":
        return id, read_row(row, id, source.short_name, source.holds, source.prompt_key, source.answer_key)
    text_key = next((key for key in ((source.text_key,) if source.text_key else KEYS) if key in row), None)
    if text_key is None:
        return id, Drop("no_text", f"its columns are {excerpt(', '.join(map(str, row)))}; set text_key")
    text = row[text_key]
    if not isinstance(text, str):
        return id, Drop("not_text", f"{text_key} is {excerpt_of(text)}")
    if len(text) > source.max_document_bytes:
        return id, Drop("too_large", f"{len(text):,} characters")
    url_key = source.url_key or "url"
    url = row.get(url_key)
    used = {text_key, id_key, *([url_key] if isinstance(url, str) else [])}
    names = (name for name in row if name not in used) if source.columns is None else source.columns
    metadata = {name: row[name] for name in names if name in row}
    is_page = source.media_type == "text/html"
    return id, Document(
        id=id,
        text="" if is_page else text,
        url=url if isinstance(url, str) else "",
        content=text.encode() if is_page else b"",
        media_type=source.media_type,
        metadata=metadata | {"charset": "utf-8"} if is_page else metadata,
    )


def row_id(row: dict[str, Any], place: str, key: str | None) -> tuple[str, str | None]:
    """The id, and the column it is from; numbers are ids only where the recipe names their column."""
    name = key or "id"
    value = row.get(name)
    if key is not None and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable() and value.strip():
        return value, name
    return place, None


class TooMany(Exception):
    """A row of so many values is no document."""


class Room:
    """How many values a row may still have."""

    def __init__(self, values: int) -> None:
        self.values = values

    def take(self, values: int) -> None:
        self.values -= values
        if self.values < 0:
            raise TooMany


def plain(value: Any, room: Room, depth: int = 0) -> Any:
    """What JSON can hold: dates as text, no bytes, no infinities, no half characters, nothing too deep."""
    match value:
        case str():
            return value if value.isascii() or not has_surrogates(value) else mend(value)
        case None | bool():
            return value
        case int():
            return value if -LARGEST <= value < LARGEST else str_of_long(value)
        case float():
            return value if math.isfinite(value) else None
        case dict() | list() | tuple() if depth >= DEEPEST:
            return None
        case dict():
            room.take(len(value))
            return {mend(str(name)): plain(item, room, depth + 1) for name, item in value.items()}
        case list() | tuple():
            room.take(len(value))
            return [plain(item, room, depth + 1) for item in value]
        case bytes():
            return value.decode(errors="replace")
    return mend(str(value))


def has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def mend(text: str) -> str:
    return text.encode(errors="replace").decode() if has_surrogates(text) else text


def str_of_long(value: int) -> str:
    return hex(value) if value.bit_length() > 10_000 else str(value)


def excerpt_of(value: Any) -> str:
    return excerpt(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
