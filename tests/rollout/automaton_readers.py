"""What a slab of an automaton says, read without the code that wrote it; and single drafts."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.drafts.suffixes import (
    COUNT,
    EDGES,
    NEXT,
    NONE,
    ROOT,
    TARGET,
    TOKEN,
    find,
)

Text = tuple[int, ...]


def state_of(m: Sequence[int], string: Text) -> int | None:
    state = ROOT
    for token in string:
        edge = find(m, state, token)
        if edge == NONE:
            return None
        state = m[edge + TARGET]
    return state


def edges_of(m: Sequence[int], state: int) -> dict[int, int]:
    found = {}
    edge = m[state + EDGES]
    while edge != NONE:
        child = m[edge + TARGET]
        found[int(m[child + TOKEN])] = int(m[child + COUNT])
        edge = m[edge + NEXT]
    return found


def draft(drafts: GroupDrafts, group: int, request_id: str, max_tokens: int = 8) -> Text:
    """What may follow all that was appended for a request."""
    sizes_R, tokens_RK = drafts.draft_rows([drafts.join(group, request_id)], max_tokens)
    return tuple(tokens_RK[0, : sizes_R[0]].tolist())
