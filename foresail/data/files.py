"""Reads data files: bytes, compressed or not, JSON lines and parquet rows; errors name the place.

with explaining_damage(path), open_bytes(path) as file: …      # .gz, .xz, .bz2, .zst, or as it is
parse_json('{"text": "a"}', "train.jsonl:17") -> {"text": "a"}
for number, row in enumerate(parquet_rows(path), 1): …
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foresail.data.zst import open_zst

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
ROWS_AT_ONCE = 256  # of parquet, in memory


def open_bytes(path: Path) -> Any:
    match path.suffix:
        case ".gz":
            return gzip.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
        case ".bz2":
            return bz2.open(path, "rb")
        case ".zst":
            return open_zst(path)
    return path.open("rb")


@contextmanager
def explaining_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged or cut short ({error}); fetch it again") from error
    except OSError as error:
        if error.errno is not None:  # the disk's; those of gzip and bz2 have no number
            raise
        raise ValueError(f"{path} is damaged or cut short ({error}); fetch it again") from error


def parse_json(line: str, place: str) -> Any:
    """One line, which `place` names in an error."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:  # no JSON, thousands of digits, lists in lists in …
        raise ValueError(
            f"{place}: not JSON ({error}): {excerpt(line.strip())}; correct or delete this line"
        ) from None


def open_parquet(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("parquet files need pyarrow: pip install 'foresail[parquet]'") from error
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a readable parquet file ({error}); fetch it again") from error


def parquet_rows(path: Path, groups: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
    """All rows, or those of some row groups."""
    with open_parquet(path) as file:
        import pyarrow

        try:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=groups):
                yield from batch.to_pylist()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} holds what is not UTF-8 text ({error}); write it anew as UTF-8"
            ) from error
        except pyarrow.ArrowException as error:
            raise ValueError(f"{path} is not a readable parquet file ({error}); fetch it again") from error


def excerpt(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
