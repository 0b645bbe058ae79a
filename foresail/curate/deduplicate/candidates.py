"""Near duplicates whose signatures are compared: bands propose, signatures decide.

Every removed document is like the one it names, and that one stays. (Without comparison a chain of candidates
becomes one cluster, whose ends may have little in common.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from foresail.curate.deduplicate.blocks import Array, BlockWriter, read_blocks
from foresail.curate.deduplicate.collected import Collected
from foresail.curate.deduplicate.verdicts import scratch_array

LEADERS = 16  # of a group, with which its members are compared
Groups = Iterable[tuple[Array, Array]]


def settle_candidates(
    collected: Collected, groups: Groups, least: int, first_n: Array, scratch: Path
) -> dict[str, Any]:
    """Write into first_n which document each one repeats; `least` numbers of their signatures are equal."""
    from foresail.curate.deduplicate.kernels.clusters import compare_groups, settle

    is_candidate_n = scratch_array(scratch / "is_candidate", len(first_n), np.uint8)
    with BlockWriter(scratch / "proposed") as file:
        for numbers, starts in groups:
            is_candidate_n[numbers] = 1
            file.add(numbers=numbers, starts=starts)
    slots_n = scratch_array(scratch / "slots", len(first_n), np.int64)
    signatures_sP = copy_signatures(collected, is_candidate_n, slots_n, scratch / "signatures")
    leaders = np.zeros(LEADERS, np.int64)
    comparisons = 0
    for block in read_blocks(scratch / "proposed"):
        comparisons += compare_groups(
            block["numbers"], block["starts"], slots_n, signatures_sP, least, leaders, first_n
        )
    settle(first_n, slots_n, signatures_sP, least)
    return {"candidates": len(signatures_sP), "comparisons": comparisons}


def copy_signatures(collected: Collected, wanted_n: Array, slots_n: Array, path: Path) -> Array:
    """Signatures of some documents, behind one another in a file; slots_n says where."""
    count = permutations = 0
    with path.open("wb") as file:
        for start, block in collected.blocks():
            permutations = block["signatures"].shape[1]
            wanted = np.flatnonzero(wanted_n[start : start + len(block["signatures"])])
            file.write(block["signatures"][wanted].tobytes())
            slots_n[start + wanted] = np.arange(count, count + len(wanted))
            count += len(wanted)
    if not count:
        return np.zeros((0, permutations), np.uint32)
    return np.asarray(np.memmap(path, np.uint32, mode="r").reshape(count, permutations))


def keys_of_band(collected: Collected, band: int) -> Iterator[tuple[Array, Array]]:
    for start, block in collected.blocks():
        keys = block["keys"][band]
        yield keys[:, None], np.arange(start, start + len(keys))
