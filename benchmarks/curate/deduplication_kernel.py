"""Our kernel on ready shingles, as datasketch is timed: what `sign_text` does after it has cut the text.

ready = Shingles.of([["a b c", "b c d"], …]); ready.signatures(128, seed=1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from foresail.curate.deduplicate.kernels.sha1 import LANES, LONG
from foresail.curate.deduplicate.kernels.signatures import QUEUED, QUEUES, apply_queue, blocks_of
from foresail.curate.deduplicate.minhash import EMPTY
from foresail.curate.deduplicate.permutations import permutations

compiled: Any = njit(nogil=True)


@dataclass(frozen=True, kw_only=True)
class Shingles:
    """Bytes of all, where each begins, its size; shingles of a text stand by their blocks, which end at ends_nq."""

    text: Any
    starts: Any
    sizes: Any
    ends_nq: Any

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]]) -> Shingles:
        parts, starts, sizes, ends, place = [], [], [], [], 0
        for own in texts:
            content = [shingle.encode() for shingle in own]
            for queue in range(1, QUEUES + 1):
                for part in content:
                    if min(blocks_of(len(part)), QUEUES) == queue:
                        parts.append(part)
                        starts.append(place)
                        sizes.append(len(part))
                        place += len(part)
                ends.append(len(starts))
        padding = [0] * LANES
        return cls(
            text=np.frombuffer(b"".join(parts) + bytes(64), np.uint8),
            starts=np.array(starts + padding, np.int64),
            sizes=np.array(sizes + padding, np.int64),
            ends_nq=np.array(ends, np.int64).reshape(-1, QUEUES),
        )

    def signatures(self, count: int, seed: int) -> Any:
        signatures_nP = np.full((len(self.ends_nq), count), EMPTY, np.uint32)
        sign(self.text, self.starts, self.sizes, self.ends_nq, *permutations(count, seed), signatures_nP)
        return signatures_nP


@compiled
def sign(text: Any, starts: Any, sizes: Any, ends_nq: Any, a_P: Any, b_P: Any, signatures_nP: Any) -> None:
    work, hashes = np.zeros(LONG, np.uint32), np.zeros(QUEUED + LANES, np.uint32)
    begin = 0
    for n in range(len(ends_nq)):
        for end in ends_nq[n]:
            while begin < end:
                count = min(end - begin, QUEUED)
                apply_queue(
                    text, starts[begin:], sizes[begin:], count, work, hashes, a_P, b_P, signatures_nP[n]
                )
                begin += count
