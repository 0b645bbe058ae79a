"""From an engine's running rows to their groups' automata, and from these to guesses for the rows.

Legend: S slots, R running rows, K places of a draft, N tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foresail.engine.engine import Engine
from foresail.engine.guesses import Guesses
from foresail.engine.request import Completion
from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.plan import Ask

NO_ROW = -1  # in the automata, so far
MOST_KEPT = 2  # groups a slot, before those of which nobody is here are forgotten


class Listener:
    """begin each request; hear what rows drew; guess what they draw next.

    Automata hear of a text when a guess is wanted from it, which for most of many rows is never.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.drafts = GroupDrafts()
        self.asks: dict[str, Ask] = {}
        self.untold: dict[int, dict[str, Sequence[int]]] = {}  # by group and request: what it drew in all
        self.known_groups: set[int] = set()  # somebody of theirs has ended, so their length can be guessed
        num_slots = len(engine.table.seats_S)
        self.seats_S = np.full(num_slots, -1)  # whom the next four are about
        self.rows_S, self.groups_S = np.zeros((2, num_slots), dtype=np.int64)
        self.before_S = np.zeros(num_slots, dtype=np.int64)  # tokens drawn before the row was seated here
        self.unknown_S = np.zeros(num_slots, dtype=bool)  # rows of groups that are not known

    def begin(self, ask: Ask, prompt: Sequence[int], drawn: Sequence[int]) -> None:
        """A request is about to run here, with so much drawn already."""
        self.asks[ask.id] = ask
        if ask.group not in self.drafts.siblings:
            self.drafts.register(ask.group, prompt)
        if drawn:
            self.learn(ask, drawn)

    def learn(self, ask: Ask, ids: Sequence[int]) -> None:
        """What a request drew in all so far, here or elsewhere; of groups that never ran here nothing is kept."""
        if ask.group in self.drafts.siblings:
            self.untold.setdefault(ask.group, {})[ask.id] = ids

    def make_room(self, here: set[int]) -> None:
        """Forget all groups but these and those of running rows, once there are too many.

        A run forgets them all with its old weights; an evaluation has the same weights to its end.
        """
        if len(self.drafts.siblings) <= MOST_KEPT * len(self.seats_S):
            return
        here = here | {self.asks[row.request.id].group for row in self.engine.running.values()}
        gone = self.drafts.siblings.keys() - here
        for group in gone:
            self.drafts.drop(group)
            self.untold.pop(group, None)
        self.known_groups.difference_update(gone)
        self.asks = {name: ask for name, ask in self.asks.items() if ask.group in here}

    def note(self, completion: Completion) -> None:
        """A chunk has ended here, or a whole request. Of who was given up under older weights nothing is known."""
        ask = self.asks.get(completion.request.id)
        if ask is None:
            return
        self.learn(ask, completion.ids)
        if completion.finish != "chunk":
            self.known_groups.add(ask.group)
            self.unknown_S[self.groups_S == ask.group] = False

    def greet(self) -> np.ndarray:
        """The running slots; who is new in one of them is known from here on."""
        slots_R = np.fromiter(self.engine.running, np.int64, len(self.engine.running))
        for slot in slots_R[self.are_new(slots_R)].tolist():
            self._greet(slot)
        return slots_R

    def hear(self) -> np.ndarray:
        """Take in what was drawn since the last call; the running slots."""
        table, slots_R = self.engine.table, self.greet()
        for group in self.untold.keys() & set(self.groups_S[slots_R].tolist()):
            for name, ids in self.untold.pop(group).items():
                self.drafts.append(group, name, 0, ids)
        for slot in slots_R[self.rows_S[slots_R] == NO_ROW].tolist():
            name = self.engine.running[slot].request.id
            self.rows_S[slot] = self.drafts.join(int(self.groups_S[slot]), name)
        if len(slots_R):
            heard_R = self.heard(slots_R)
            counts_R = table.drawn_S[slots_R] - heard_R
            slots_N = np.repeat(slots_R, counts_R)
            within_N = np.arange(len(slots_N)) - np.repeat(counts_R.cumsum() - counts_R, counts_R)
            tokens_N = table.tokens_SL[slots_N, np.repeat(heard_R, counts_R) + within_N]
            self.drafts.append_rows(
                self.rows_S[slots_R], self.before_S[slots_R] + heard_R, counts_R, tokens_N
            )
        return slots_R

    def heard(self, slots_R: np.ndarray) -> np.ndarray:
        """How many tokens of each row, of those it drew in its seat."""
        return self.drafts.known(self.rows_S[slots_R]) - self.before_S[slots_R]

    def guess(self, slots_R: np.ndarray, most_R: np.ndarray) -> Guesses:
        """At most so many tokens for each row."""
        found = self.drafts.draft_rows(self.rows_S[slots_R], most_R)
        return Guesses(slots_R=slots_R, sizes_R=found.sizes_R, tokens_RK=found.tokens_RK)

    def are_new(self, slots_R: np.ndarray) -> np.ndarray:
        """Which of these were seated since the last greeting."""
        return self.seats_S[slots_R] != self.engine.table.seats_S[slots_R]

    def _greet(self, slot: int) -> None:
        row = self.engine.running[slot]
        ask = self.asks[row.request.id]
        self.seats_S[slot] = self.engine.table.seats_S[slot]
        self.rows_S[slot], self.groups_S[slot] = NO_ROW, ask.group
        if row.drawn:  # before it was put back, or elsewhere
            self.learn(ask, row.drawn)
        self.before_S[slot] = len(row.drawn)
        self.unknown_S[slot] = ask.group not in self.known_groups
