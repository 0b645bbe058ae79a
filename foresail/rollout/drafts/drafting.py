"""Drafts for the running requests of many groups, each from its group's texts so far.

Responses to the same problem are often similar. One automaton per group learns from all of them as they grow; a
draft is what followed the same tokens before, in the row's own text, a sibling's, or the prompt.

    drafts = GroupDrafts()
    drafts.register(17, prompt)
    row = drafts.join(17, "17.3")
    drafts.append_rows([row], [0], [3], [5, 9, 2])     # 3 more tokens after its first 0
    sizes_R, tokens_RK = drafts.draft_rows([row], 8)   # up to 8 tokens that may follow

Appending and drafting are one call into machine code each, for all rows. Drafts change how many tokens a step
samples, never which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from foresail.engine.drafts import MAX_DRAFT
from foresail.rollout.drafts.compiled import Flat, flat
from foresail.rollout.drafts.rows import (
    GROUP,
    GROUP_SIZE,
    KNOWN,
    ROW_SIZE,
    SIZE,
    START,
    TOKENS,
    RowTable,
    append_all,
    append_text,
    draft_all,
    enter,
)
from foresail.rollout.drafts.slabs import Slabs
from foresail.rollout.drafts.suffixes import SLAB_PER_TOKEN


@dataclass(frozen=True, kw_only=True)
class GroupRows:
    """A group: its place in the table of groups, the end of its prompt, and its rows by request id."""

    number: int
    prompt_end: np.ndarray
    rows: dict[str, int] = field(default_factory=dict)


class GroupDrafts:
    """register, join, append, draft, drop.

    A context is its last `window` tokens; a draft ends where its probability falls below `least`.
    """

    def __init__(self, *, window: int = 32, least: float = 0.1) -> None:
        if window < 1 or not 0.02 <= least <= 1:
            raise ValueError(f"drafts take window >= 1 and 0.02 <= least <= 1; got {window} and {least}")
        self.window, self.least = window, least
        self.slabs = Slabs()
        self.siblings: dict[int, GroupRows] = {}
        self.groups = RowTable(GROUP_SIZE)
        self.rows = RowTable(ROW_SIZE)

    def register(self, group: int, prompt: Sequence[int] = ()) -> None:
        """Begin a group. Its prompt is the first text, since responses may quote it."""
        if group in self.siblings:
            raise ValueError(f"group {group} is registered already; drop it first")
        text = np.array(prompt, dtype=np.int64)
        start, capacity = self.slabs.take(2 * len(text))
        number = self.groups.take((start, capacity * SLAB_PER_TOKEN, len(text)))
        self.siblings[group] = GroupRows(number=number, prompt_end=text[-self.window - 1 :])
        append_text(self._slab(number), flat(text[:-1]), self.window)

    def join(self, group: int, request_id: str) -> int:
        """The row of a request; a new one begins after the prompt."""
        siblings = self._siblings(group)
        if request_id not in siblings.rows:
            self._make_room(np.array([siblings.number]), np.array([len(siblings.prompt_end)]))
            self.groups.numbers[siblings.number, TOKENS] += len(siblings.prompt_end)
            whole, recent = enter(self._slab(siblings.number), flat(siblings.prompt_end), self.window)
            siblings.rows[request_id] = self.rows.take((siblings.number, whole, recent, 0))
        return siblings.rows[request_id]

    def drop(self, group: int) -> None:
        """Forget a group and its rows."""
        siblings = self._siblings(group)
        del self.siblings[group]
        start, size, _ = self.groups.numbers[siblings.number].tolist()
        self.slabs.give(start, size // SLAB_PER_TOKEN)
        self.groups.give(siblings.number)
        for row in siblings.rows.values():
            self.rows.give(row)

    def append(
        self, group: int, request_id: str, prev_token_count: int, new_tokens: Sequence[int] | np.ndarray
    ) -> int:
        """Append what a request sampled after its first `prev_token_count` tokens; returns how many are known.

        Known tokens are skipped. A result below `prev_token_count` means a gap: nothing was appended, and the
        caller must append from there.
        """
        row = self.join(group, request_id)
        known = self.append_rows([row], [prev_token_count], [len(new_tokens)], new_tokens)
        return int(known[0])

    def known(self, rows_R: np.ndarray) -> np.ndarray:
        """How many tokens of each row are known."""
        return self.rows.numbers[rows_R, KNOWN]

    def append_rows(
        self,
        rows_R: Sequence[int] | np.ndarray,
        before_R: Sequence[int] | np.ndarray,
        counts_R: Sequence[int] | np.ndarray,
        tokens_N: Sequence[int] | np.ndarray,
    ) -> np.ndarray:
        """`append` for many rows; tokens_N holds the tokens of the first, then of the second, and so on."""
        chosen_R, before_R, counts_R, tokens_N = (
            np.ascontiguousarray(numbers, dtype=np.int64)
            for numbers in (rows_R, before_R, counts_R, tokens_N)
        )
        assert counts_R.sum() == len(tokens_N), "counts_R must add up to the number of tokens"
        self._make_room(self._groups_of(chosen_R), counts_R)
        append_all(
            flat(self.slabs.memory),
            flat(self.groups.numbers),
            flat(self.rows.numbers),
            flat(chosen_R),
            flat(before_R),
            flat(counts_R),
            flat(tokens_N),
            self.window,
        )
        return self.known(chosen_R)

    def draft_rows(
        self, rows_R: Sequence[int] | np.ndarray, max_tokens_R: int | np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A draft of at most max_tokens_R tokens for each row: the first sizes_R[i] of tokens_RK[i]."""
        chosen_R = np.ascontiguousarray(rows_R, dtype=np.int64)
        max_R = np.array(np.broadcast_to(max_tokens_R, chosen_R.shape), dtype=np.int64)
        if len(max_R) and not 0 <= max_R.min() <= max_R.max() <= MAX_DRAFT:
            raise ValueError(f"a draft has 0 to {MAX_DRAFT} tokens; got {max_tokens_R}")
        self._groups_of(chosen_R)
        sizes_R = np.zeros(len(chosen_R), np.int64)
        tokens_RK = np.zeros((len(chosen_R), MAX_DRAFT), np.int64)
        draft_all(
            flat(self.slabs.memory),
            flat(self.groups.numbers),
            flat(self.rows.numbers),
            flat(chosen_R),
            flat(max_R),
            MAX_DRAFT,
            self.window,
            self.least,
            flat(sizes_R),
            flat(tokens_RK),
        )
        return sizes_R, tokens_RK

    def _siblings(self, group: int) -> GroupRows:
        if group not in self.siblings:
            raise ValueError(f"group {group} is not known, or was dropped; register it with its prompt")
        return self.siblings[group]

    def _groups_of(self, rows_R: np.ndarray) -> np.ndarray:
        groups_R = self.rows.numbers[rows_R, GROUP]
        assert (groups_R >= 0).all(), "a row of a group that was dropped"
        return groups_R

    def _make_room(self, groups_R: np.ndarray, counts_R: np.ndarray) -> None:
        """Move groups to larger slabs if `counts_R` more tokens may not fit."""
        numbers = self.groups.numbers
        tokens_G = numbers[:, TOKENS] + np.bincount(groups_R, counts_R, len(numbers)).astype(np.int64)
        for group in np.flatnonzero(tokens_G * SLAB_PER_TOKEN > numbers[:, SIZE]).tolist():
            start, size, _ = numbers[group].tolist()
            start, capacity = self.slabs.grow(start, size // SLAB_PER_TOKEN, int(tokens_G[group]))
            numbers[group, START], numbers[group, SIZE] = start, capacity * SLAB_PER_TOKEN

    def _slab(self, group: int) -> Flat:
        start, size, _ = self.groups.numbers[group].tolist()
        return flat(self.slabs.memory[start : start + size])
