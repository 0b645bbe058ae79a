"""Drafts for an engine's running rows: feeds their tokens to their groups' automata and drafts from these.

Legend: S slots, R running rows, K places of a draft, N tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foresail.engine.drafts import Drafts
from foresail.engine.engine import Engine
from foresail.engine.request import Completion
from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.groups import behind_prompt
from foresail.rollout.plan import SampleSpec

NO_ROW = -1  # not yet in an automaton
GROUPS_PER_SLOT = 2  # groups per slot above which those without requests here are forgotten


class RowDrafts:
    """begin each request; update the automata with sampled tokens; draft the next ones.

    A text is appended only when a draft of its group is needed; with many rows most are never needed.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.drafts = GroupDrafts()
        self.specs: dict[str, SampleSpec] = {}
        self.pending_texts: dict[
            int, dict[str, Sequence[int]]
        ] = {}  # group -> request -> its response so far
        self.known_groups: set[int] = set()  # with a finished sample, so their length can be estimated
        num_slots = len(engine.table.reuses_S)
        self.reuses_S = np.full(num_slots, -1)  # the slot's occupant, for the next four arrays
        self.rows_S, self.groups_S = np.zeros((2, num_slots), dtype=np.int64)
        # tokens after the prompt at the row's start here
        self.earlier_S = np.zeros(num_slots, dtype=np.int64)
        self.unknown_S = np.zeros(num_slots, dtype=bool)  # rows of groups without a finished sample

    def begin(self, spec: SampleSpec, prompt: Sequence[int], ids: Sequence[int]) -> None:
        """A request will run here, with these tokens after its prompt."""
        self.specs[spec.id] = spec
        if spec.group not in self.drafts.siblings:
            self.drafts.register(spec.group, prompt)
        if ids:
            self.learn(spec, ids)

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        """A response so far, here or elsewhere; groups that never ran here are ignored."""
        if spec.group in self.drafts.siblings:
            self.pending_texts.setdefault(spec.group, {})[spec.id] = ids

    def make_room(self, here: set[int]) -> None:
        """Forget all groups except these and those of running rows, if there are too many.

        Training forgets all groups with their weights; an evaluation keeps its weights to the end.
        """
        if len(self.drafts.siblings) <= GROUPS_PER_SLOT * len(self.reuses_S):
            return
        here = here | {self.specs[row.request.id].group for row in self.engine.slots.values()}
        forgotten = self.drafts.siblings.keys() - here
        for group in forgotten:
            self.drafts.drop(group)
            self.pending_texts.pop(group, None)
        self.known_groups.difference_update(forgotten)
        self.specs = {name: spec for name, spec in self.specs.items() if spec.group in here}

    def note(self, completion: Completion) -> None:
        """A chunk or a request has ended here; requests cancelled under older weights are ignored."""
        spec = self.specs.get(completion.request.id)
        if spec is None:
            return
        self.learn(spec, behind_prompt(spec, completion.request, completion.ids))
        if completion.finish != "chunk":
            self.known_groups.add(spec.group)
            self.unknown_S[self.groups_S == spec.group] = False

    def register_slots(self) -> np.ndarray:
        """The running slots, after registering new occupants."""
        slots_R = np.fromiter(self.engine.slots, np.int64, len(self.engine.slots))
        for slot in slots_R[self.are_new(slots_R)].tolist():
            self._register(slot)
        return slots_R

    def append_new_tokens(self) -> np.ndarray:
        """Append the tokens sampled since the last call; returns the running slots."""
        table, slots_R = self.engine.table, self.register_slots()
        for group in self.pending_texts.keys() & set(self.groups_S[slots_R].tolist()):
            for name, ids in self.pending_texts.pop(group).items():
                self.drafts.append(group, name, 0, ids)
        for slot in slots_R[self.rows_S[slots_R] == NO_ROW].tolist():
            name = self.engine.slots[slot].request.id
            self.rows_S[slot] = self.drafts.join(int(self.groups_S[slot]), name)
        if len(slots_R):
            appended_R = self.num_appended(slots_R)
            counts_R = table.sampled_S[slots_R] - appended_R
            slots_N = np.repeat(slots_R, counts_R)
            within_N = np.arange(len(slots_N)) - np.repeat(counts_R.cumsum() - counts_R, counts_R)
            tokens_N = table.tokens_SL[slots_N, np.repeat(appended_R, counts_R) + within_N]
            self.drafts.append_rows(
                self.rows_S[slots_R], self.earlier_S[slots_R] + appended_R, counts_R, tokens_N
            )
        return slots_R

    def num_appended(self, slots_R: np.ndarray) -> np.ndarray:
        """How many of the tokens that each row sampled in its slot the automata have."""
        return self.drafts.known(self.rows_S[slots_R]) - self.earlier_S[slots_R]

    def draft(self, slots_R: np.ndarray, max_R: np.ndarray) -> Drafts:
        """A draft of at most `max_R` tokens for each row."""
        sizes_R, tokens_RK = self.drafts.draft_rows(self.rows_S[slots_R], max_R)
        return Drafts(slots_R=slots_R, sizes_R=sizes_R, tokens_RK=tokens_RK)

    def are_new(self, slots_R: np.ndarray) -> np.ndarray:
        """Which slots have a new occupant."""
        return self.reuses_S[slots_R] != self.engine.table.reuses_S[slots_R]

    def _register(self, slot: int) -> None:
        row = self.engine.slots[slot]
        spec = self.specs[row.request.id]
        self.reuses_S[slot] = self.engine.table.reuses_S[slot]
        self.rows_S[slot], self.groups_S[slot] = NO_ROW, spec.group
        earlier_ids = behind_prompt(spec, row.request, row.sampled)
        if earlier_ids:  # of earlier turns, before a preemption, or elsewhere
            self.learn(spec, earlier_ids)
        self.earlier_S[slot] = len(earlier_ids)
        self.unknown_S[slot] = spec.group not in self.known_groups
