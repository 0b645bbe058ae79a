"""What a source of a recipe says, and the pieces it is cut into; `source.py` lists and reads them.

ReadPiece(source, "jsonl", "data", ("a.jsonl",), 0, 67108864)      str: "data/a.jsonl, 0 to 67108864"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.read.files import default_name
from foresail.curate.rows.holds import Held
from foresail.data.made.generators import names_generator
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

Kind = Literal[
    "jsonl", "parquet", "warc", "arc", "html", "pdf", "epub", "docx", "doc", "rtf", "markdown", "text"
]
Record = Callable[[], tuple[str, Document | Drop]]  # a record that is parsed when it is called


class Source(CheckedPart):
    """Where documents come from."""

    path: Texts = Field(
        description="file, folder or glob, one or several; or a generator such as word-problems:count=5000"
    )
    name: str = Field(
        "", description='short name that begins ids: "web"; default: of the first file or folder'
    )
    kind: Literal["auto"] | Kind = Field("auto", description="auto: by suffix, then by the first bytes")
    holds: Held = Field("documents", description="what each row is; files of rows only, if not documents")
    text_key: str | None = Field(None, description="column of rows with the text; default: text or content")
    prompt_key: str | None = Field(
        None, description="of problems: column with the prompt; default: prompt, problem, question, …"
    )
    answer_key: str | None = Field(
        None, description="of problems: column with the answer; default: answer, ground_truth, …, or tests"
    )
    id_key: str | None = Field(None, description="column with the id; default: id, where it is text")
    url_key: str | None = Field(None, description="column with the address; default: url")
    columns: Texts | None = Field(None, description="columns that go to metadata; default: all others")
    media_type: Literal["text/plain", "text/markdown", "text/html"] = Field(
        "text/plain", description="what the text column holds; text/html goes through extraction"
    )
    encoding: str = Field("auto", description="of text and rows: utf-8, gb18030, tis-620, …; auto: detected")
    max_document_bytes: int = Field(64 * 2**20, ge=1, description="longer documents and lines are dropped")

    def mistakes(self) -> Iterator[str]:
        if not self.path:
            yield "path is empty; name a file, a folder or a glob"
        if "/" in self.name or self.name != self.name.strip():
            yield f'name = "{self.name}" begins ids; choose a short one without a slash, like web'
        if self.holds == "documents" and any(map(names_generator, self.path)):
            yield 'a generator makes problems; write holds = "problems", or "conversations" with their solutions'
        if self.holds != "problems" and (self.prompt_key or self.answer_key):
            yield f'prompt_key and answer_key are for holds = "problems"; remove them, for it holds {self.holds}'
        if self.encoding != "auto":
            try:
                blank = " ".encode(self.encoding)
            except (LookupError, ValueError):
                yield f'encoding = "{self.encoding}" is none that Python knows; write auto, utf-8, gb18030, …'
            else:
                if blank != b" " and self.kind == "jsonl":
                    yield f"JSONL in {self.encoding} cannot be cut into lines; convert it to UTF-8 (iconv)"

    @property
    def short_name(self) -> str:
        """ "crawl" for path = "data/crawl/" or "data/crawl.warc.gz"."""
        return self.name or default_name(self.path[0])


@dataclass(frozen=True, slots=True)
class ReadPiece:
    """One file or a part of it (`start` and `stop`: bytes of lines, row groups of parquet), or several small files.

    `files` are relative to `folder`; ids begin with the source's name and the file's. `limit`: so many records.
    """

    source: Source
    kind: str
    folder: str
    files: tuple[str, ...]
    start: int = 0
    stop: int | None = None
    limit: int | None = None

    def __str__(self) -> str:
        return self.place if self.limit is None else f"{self.place}, the first {self.limit}"

    @property
    def place(self) -> str:
        name = self.names[0]
        if len(self.files) > 1:
            return f"{name} and {len(self.files) - 1} more up to {printable(self.files[-1])}"
        return name if self.stop is None else f"{name}, {self.start} to {self.stop}"

    @property
    def names(self) -> list[str]:
        """ids without their number: "crawl/a.warc.gz"."""
        return [f"{self.source.short_name}/{printable(file)}" for file in self.files]


def printable(name: str) -> str:
    """A file's name as text that can be written: bytes that are no UTF-8, and line breaks, become "�" """
    text = name.encode(errors="surrogateescape").decode(errors="replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
