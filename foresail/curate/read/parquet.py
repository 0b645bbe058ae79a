"""Rows of parquet files, in pieces of row groups; ids are numbered by row: "web/a.parquet:4711".

A column that says one text a million times takes few bytes of a file; the file ends where its budget does.

Rows are passed over without making Python objects of them. A group that cannot be read is one drop.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from foresail.curate.document import Document, Drop
from foresail.curate.read.budget import Budget, Damaged, budget_of
from foresail.curate.read.files import open_regular
from foresail.curate.read.lines import drop_record
from foresail.curate.read.piece import ReadPiece, Record, Source
from foresail.curate.read.row import row_document
from foresail.data.files import ROWS_AT_ONCE, excerpt, open_parquet

LARGE = 2**28  # bytes of a batch of rows


def parquet_records(piece: ReadPiece) -> Iterator[Record]:
    path, name = Path(piece.folder, piece.files[0]), piece.names[0]
    try:
        open_regular(path).close()
        budget = Budget(budget_of(path))
        file = open_parquet(path)
    except Damaged as damage:
        yield partial(drop_record, f"{name}:0", damage.drop)
        return
    except (ValueError, OSError) as error:
        yield partial(drop_record, f"{name}:0", Drop("damaged", str(error)[:200]))
        return
    with file:
        metadata = file.metadata
        stop = metadata.num_row_groups if piece.stop is None else piece.stop
        number = sum(metadata.row_group(group).num_rows for group in range(piece.start))
        for group in range(piece.start, min(stop, metadata.num_row_groups)):
            if (size := mean_value(metadata.row_group(group))) > piece.source.max_document_bytes:
                drop = Drop("too_large", f"row group {group}: a column of {size:,} bytes a value in the mean")
                yield partial(drop_record, f"{name}:{number}", drop)
                number += metadata.row_group(group).num_rows
                continue
            try:
                yield from group_records(file, group, number, name, piece.source, budget)
            except Damaged as damage:
                yield partial(drop_record, f"{name}:{number}", damage.drop)
                return
            number += metadata.row_group(group).num_rows


def mean_value(group: Any) -> int:
    """Bytes, in the column with the longest values: one of a gigabyte is not unpacked."""
    columns = [group.column(number) for number in range(group.num_columns)]
    return max((column.total_uncompressed_size // max(column.num_values, 1) for column in columns), default=0)


def group_records(
    file: Any, group: int, number: int, name: str, source: Source, budget: Budget
) -> Iterator[Record]:
    import pyarrow

    try:
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
            size = size_of(batch)
            budget.spend(size)
            # filled when the first of these rows is parsed; large ones are parsed one by one
            rows: list[list[Any]] = [[None] * batch.num_rows] if size > LARGE else []
            for index in range(batch.num_rows):
                yield partial(batch_record, batch, rows, index, f"{name}:{number + index}", source)
            number += batch.num_rows
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield partial(
            drop_record, f"{name}:{number}", Drop("damaged", f"row group {group}: {str(error)[:200]}")
        )


def size_of(batch: Any) -> int:
    """Bytes as Python has them: a value of a dictionary counts each time it is there."""
    import pyarrow
    import pyarrow.compute

    size: int = batch.nbytes
    for column in batch.columns:
        if pyarrow.types.is_dictionary(column.type) and column.type.value_type in (
            pyarrow.string(),
            pyarrow.large_string(),
            pyarrow.binary(),
        ):
            lengths = pyarrow.compute.binary_length(column.dictionary).take(column.indices)
            size += pyarrow.compute.sum(lengths).as_py() or 0
    return size


def batch_record(
    batch: Any, rows: list[list[Any]], index: int, place: str, source: Source
) -> tuple[str, Document | Drop]:
    if not rows:
        try:
            rows.append(batch.to_pylist())
        except (UnicodeDecodeError, ValueError, OverflowError):  # one row is broken; find out which
            rows.append([None] * batch.num_rows)
    row = rows[0][index]
    if row is None:
        try:
            [row] = batch.slice(index, 1).to_pylist()
        except MemoryError:
            return place, Drop("out_of_memory", "a row that needs more memory than there is")
        except (UnicodeDecodeError, ValueError, OverflowError) as error:
            return place, Drop("broken_encoding", excerpt(str(error)))
    return row_document(row, place, source)
