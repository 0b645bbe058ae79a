"""Reads XML as it streams in, without entities: begin and end of elements, and text, go to a handler.

class Titles(Handler):
    def begin(self, name, attributes): …        # name "http://…/main}p", attributes by the same kind of names
    def end(self, name): …
    def text(self, text): …

read_xml(package.parts("word/document.xml"), Titles())

A file that declares entities is refused: billions of laughs need them, documents do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn
from xml.parsers import expat

from foresail.curate.extract.refused import Refused

DEEPEST = 400
MAX_ELEMENTS = 3_000_000  # ten seconds of them; a thousand printed pages have a tenth
LONGEST_TAG = (
    2**21
)  # bytes: the parser reads an unfinished tag again from its begin with every part that comes


class Handler:
    def begin(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


def read_xml(parts: Iterable[bytes], handler: Handler) -> bool:
    """False: the XML breaks off or is broken; what was before that went to the handler."""
    parser = expat.ParserCreate(namespace_separator="}")
    depth = elements = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, elements
        depth += 1
        elements += 1
        if elements > MAX_ELEMENTS:
            raise Refused("too_large", f"more than {MAX_ELEMENTS:,} elements")
        if depth > DEEPEST:
            raise Refused("damaged", f"XML with {DEEPEST} elements inside each other")
        handler.begin(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(name)

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = refuse_entities
    parser.buffer_text = True
    fed = 0
    try:
        for part in parts:
            parser.Parse(part, False)
            fed += len(part)
            if fed - parser.CurrentByteIndex > LONGEST_TAG:
                raise Refused("damaged", f"XML with a tag of more than {LONGEST_TAG:,} bytes")
        parser.Parse(b"", True)
    except expat.ExpatError:
        return False
    except (LookupError, ValueError) as error:  # an encoding that expat or Python does not have
        raise Refused("damaged", f"XML: {str(error)[:100]}") from error
    return True


def refuse_entities(*declaration: object) -> NoReturn:
    raise Refused("entities", f"its XML declares the entity {str(declaration[0])[:50]}")
