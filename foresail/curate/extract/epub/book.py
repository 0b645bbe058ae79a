"""Books: the chapters of an EPUB in the order of its spine, as pages of HTML.

chapters(content) -> ["<html>…first chapter", "<html>…second"], {"title": "Moby Dick", "language": "en"}

A chapter that is named twice is read once. Where the book's table of files is broken, its pages are read by name.
"""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from foresail.curate.extract.package import Package
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.xml_events import Handler, read_xml

MAX_UNPACKED = 2**28
MAX_CHAPTERS = 20_000
PAGES = ("application/xhtml+xml", "text/html", "application/xml")
SUFFIXES = (".xhtml", ".html", ".htm")
LABELS = {"title": "title", "language": "book_language", "creator": "author"}
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"


def chapters(content: bytes) -> tuple[list[bytes], dict[str, str]]:
    package = Package(content, MAX_UNPACKED)
    book = read_book(package)
    locked = locked_files(package)
    names = list(dict.fromkeys(name for name in book.chapters() if name in package))
    if not names:
        names = [name for name in package.names() if name.lower().endswith(SUFFIXES)]
    if not names:
        raise Refused("damaged", "a book without chapters")
    if locked.issuperset(names):
        raise Refused("encrypted", "its chapters are locked (DRM)")
    pages: list[bytes] = []
    refusal: Refused | None = None
    for name in names[:MAX_CHAPTERS]:
        try:
            if name not in locked:
                pages.append(package.read(name))
        except Refused as error:
            if error.drop.reason == "too_large":
                raise
            refusal = error  # one broken chapter does not lose the book
    if not pages and refusal is not None:
        raise refusal
    return pages, book.labels


class Container(Handler):
    """META-INF/container.xml names the file that lists all others."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name.endswith("rootfile") and "full-path" in attributes:
            self.paths.append(attributes["full-path"])


class Book(Handler):
    """The list of files (manifest), and their order (spine)."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.spine: list[str] = []
        self.labels: dict[str, str] = {}
        self.label = ""

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition("}")[2]
        self.label = LABELS.get(tag, "") if "dc/elements" in name else ""
        if tag == "item" and attributes.get("media-type", PAGES[0]) in PAGES:
            place = unquote(attributes.get("href", "").partition("#")[0])
            self.files[attributes.get("id", "")] = posixpath.normpath(posixpath.join(self.folder, place))
        elif tag == "itemref" and len(self.spine) < MAX_CHAPTERS:
            self.spine.append(attributes.get("idref", ""))

    def end(self, name: str) -> None:
        self.label = ""

    def text(self, text: str) -> None:
        if self.label and text.strip():
            self.labels.setdefault(self.label, text.strip()[:500])

    def chapters(self) -> list[str]:
        return [self.files[id] for id in self.spine if id in self.files]


def read_book(package: Package) -> Book:
    container = Container()
    if CONTAINER in package:
        read_xml(package.parts(CONTAINER), container)
    paths = [path for path in container.paths if path in package]
    paths = paths or [name for name in package.names() if name.lower().endswith(".opf")]
    book = Book(posixpath.dirname(paths[0]) if paths else "")
    if paths:
        read_xml(package.parts(paths[0]), book)
    return book


class Locked(Handler):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name.endswith("CipherReference"):
            self.names.add(unquote(attributes.get("URI", "")))


def locked_files(package: Package) -> set[str]:
    """Also fonts, which most publishers garble, are listed there."""
    locked = Locked()
    if ENCRYPTION in package:
        read_xml(package.parts(ENCRYPTION), locked)
    return locked.names
