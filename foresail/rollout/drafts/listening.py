"""From an engine's running rows to their groups' automata, and from these to guesses for the rows.

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

NO_ROW = -1  # in the automata, so far
GROUPS_PER_SLOT = 2  # groups a slot, before those of which nobody is here are forgotten


class Listener:
    """begin each request; hear what rows sampled; guess what they sample next.

    Automata hear of a text when a guess is wanted from it, which for most of many rows is never.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.drafts = GroupDrafts()
        self.specs: dict[str, SampleSpec] = {}
        self.untold: dict[int, dict[str, Sequence[int]]] = {}  # by group and request: what it sampled in all
        self.known_groups: set[int] = set()  # somebody of theirs has ended, so their length can be guessed
        num_slots = len(engine.table.reuses_S)
        self.reuses_S = np.full(num_slots, -1)  # whom the next four are about
        self.rows_S, self.groups_S = np.zeros((2, num_slots), dtype=np.int64)
        self.before_S = np.zeros(
            num_slots, dtype=np.int64
        )  # tokens behind the prompt before the row came here
        self.unknown_S = np.zeros(num_slots, dtype=bool)  # rows of groups that are not known

    def begin(self, spec: SampleSpec, prompt: Sequence[int], ids: Sequence[int]) -> None:
        """A request is about to run here, with so much behind its prompt already."""
        self.specs[spec.id] = spec
        if spec.group not in self.drafts.siblings:
            self.drafts.register(spec.group, prompt)
        if ids:
            self.learn(spec, ids)

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        """All behind a request's prompt so far, here or elsewhere; groups that never ran here are passed over."""
        if spec.group in self.drafts.siblings:
            self.untold.setdefault(spec.group, {})[spec.id] = ids

    def make_room(self, here: set[int]) -> None:
        """Forget all groups but these and those of running rows, once there are too many.

        A run forgets them all with its old weights; an evaluation has the same weights to its end.
        """
        if len(self.drafts.siblings) <= GROUPS_PER_SLOT * len(self.reuses_S):
            return
        here = here | {self.specs[row.request.id].group for row in self.engine.slots.values()}
        gone = self.drafts.siblings.keys() - here
        for group in gone:
            self.drafts.drop(group)
            self.untold.pop(group, None)
        self.known_groups.difference_update(gone)
        self.specs = {name: spec for name, spec in self.specs.items() if spec.group in here}

    def note(self, completion: Completion) -> None:
        """A chunk has ended here, or a whole request. Of who was given up under older weights nothing is known."""
        spec = self.specs.get(completion.request.id)
        if spec is None:
            return
        self.learn(spec, behind_prompt(spec, completion.request, completion.ids))
        if completion.finish != "chunk":
            self.known_groups.add(spec.group)
            self.unknown_S[self.groups_S == spec.group] = False

    def greet(self) -> np.ndarray:
        """The running slots; who is new in one of them is known from here on."""
        slots_R = np.fromiter(self.engine.slots, np.int64, len(self.engine.slots))
        for slot in slots_R[self.are_new(slots_R)].tolist():
            self._greet(slot)
        return slots_R

    def hear(self) -> np.ndarray:
        """Take in what was sampled since the last call; the running slots."""
        table, slots_R = self.engine.table, self.greet()
        for group in self.untold.keys() & set(self.groups_S[slots_R].tolist()):
            for name, ids in self.untold.pop(group).items():
                self.drafts.append(group, name, 0, ids)
        for slot in slots_R[self.rows_S[slots_R] == NO_ROW].tolist():
            name = self.engine.slots[slot].request.id
            self.rows_S[slot] = self.drafts.join(int(self.groups_S[slot]), name)
        if len(slots_R):
            heard_R = self.heard(slots_R)
            counts_R = table.sampled_S[slots_R] - heard_R
            slots_N = np.repeat(slots_R, counts_R)
            within_N = np.arange(len(slots_N)) - np.repeat(counts_R.cumsum() - counts_R, counts_R)
            tokens_N = table.tokens_SL[slots_N, np.repeat(heard_R, counts_R) + within_N]
            self.drafts.append_rows(
                self.rows_S[slots_R], self.before_S[slots_R] + heard_R, counts_R, tokens_N
            )
        return slots_R

    def heard(self, slots_R: np.ndarray) -> np.ndarray:
        """How many tokens of each row, of those it sampled in its slot."""
        return self.drafts.known(self.rows_S[slots_R]) - self.before_S[slots_R]

    def guess(self, slots_R: np.ndarray, most_R: np.ndarray) -> Drafts:
        """At most so many tokens for each row."""
        sizes_R, tokens_RK = self.drafts.draft_rows(self.rows_S[slots_R], most_R)
        return Drafts(slots_R=slots_R, sizes_R=sizes_R, tokens_RK=tokens_RK)

    def are_new(self, slots_R: np.ndarray) -> np.ndarray:
        """Which of these were seated since the last greeting."""
        return self.reuses_S[slots_R] != self.engine.table.reuses_S[slots_R]

    def _greet(self, slot: int) -> None:
        row = self.engine.slots[slot]
        spec = self.specs[row.request.id]
        self.reuses_S[slot] = self.engine.table.reuses_S[slot]
        self.rows_S[slot], self.groups_S[slot] = NO_ROW, spec.group
        before = behind_prompt(spec, row.request, row.sampled)
        if before:  # in earlier turns, before it was put back, or elsewhere
            self.learn(spec, before)
        self.before_S[slot] = len(before)
        self.unknown_S[slot] = spec.group not in self.known_groups
