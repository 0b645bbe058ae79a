"""Files inside a zip file in memory (EPUB, DOCX), read with limits; nothing is ever written to disk.

package = Package(content, limit=2**28)
package.read("word/document.xml") -> b"<?xml …"

Zip bombs unpack to more than `limit` bytes in all, which ends the reading; a zip inside the zip is a file like any
other. Names with "../", links and absolute names are only names here: entries are looked up, not followed.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from foresail.curate.extract.refused import Refused

MAX_DIRECTORY = 2**22  # bytes: 60,000 entries of ordinary names
END = struct.Struct("<4s4H2LH")  # the record at a zip file's end
AT_ONCE = 2**18
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Package:
    def __init__(self, content: bytes, limit: int) -> None:
        self.remaining = limit
        check_directory(content)
        with zip_damage():
            self.zip = zipfile.ZipFile(BytesIO(content))
            # the first entry of a name, as its reader sees it; later ones hide it in others
            self.entries = {info.filename: info for info in reversed(self.zip.infolist())}

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def names(self) -> list[str]:
        return sorted(self.entries)

    def read(self, name: str) -> bytes:
        return b"".join(self.parts(name))

    def parts(self, name: str) -> Iterator[bytes]:
        """The file's content, a piece at a time."""
        entry = self.entries.get(name)
        if entry is None:
            raise Refused("damaged", f"{name[:100]} is missing")
        if entry.flag_bits & 1:
            raise Refused("encrypted", f"{name[:100]} has a password")
        if entry.compress_type not in METHODS:
            raise Refused("damaged", f"{name[:100]}: an unusual compression ({entry.compress_type})")
        with zip_damage(), self.zip.open(entry) as file:
            while part := file.read(AT_ONCE):
                self.remaining -= len(part)
                if self.remaining < 0:
                    raise Refused("too_large", "unpacked, it is larger than allowed")
                yield part


def check_directory(content: bytes) -> None:
    """A million entries of no bytes take half a GB as Python objects."""
    place = content.rfind(b"PK\x05\x06", max(0, len(content) - 2**16 - END.size))
    if place < 0 or place + END.size > len(content):
        raise Refused("truncated", "no directory at the end of the zip file")
    size = END.unpack_from(content, place)[5]
    if size > MAX_DIRECTORY or content[max(0, place - 20) :].startswith(b"PK\x06\x07"):
        raise Refused("too_large", "a zip file with so many entries is no document")


@contextmanager
def zip_damage() -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        raise Refused("damaged", f"zip: {str(error)[:100]}") from error
    except (NotImplementedError, OverflowError, IndexError, MemoryError) as error:
        raise Refused("damaged", f"zip: {str(error)[:100]}") from error
