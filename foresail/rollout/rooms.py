"""The room on every instance: KV tokens reserved and rows taken, by the scheduler's own count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from foresail.rollout.plan import Ask, Dispatch, InstanceState
from foresail.rollout.ranking import Ranking


@dataclass(kw_only=True)
class Room:
    """What is left on one instance, and the requests that run there, oldest first."""

    number: int
    free_tokens: int
    free_rows: int
    shares_prompts: bool
    running: dict[str, None] = field(default_factory=dict)
    siblings: Counter[int] = field(default_factory=Counter)  # rows by group

    def need(self, ask: Ask, tokens: int) -> int:
        """What a request would hold here with so many tokens behind its prompt."""
        shared = self.shares_prompts and self.siblings[ask.group] > 0
        return tokens if shared else ask.prompt_tokens + tokens

    def fits(self, ask: Ask, tokens: int) -> bool:
        return self.free_rows > 0 and self.free_tokens >= self.need(ask, tokens)


class Rooms:
    """All instances, the one with most free tokens first; those without a free row come last."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._order: Ranking[str] = Ranking()
        self._added: dict[str, InstanceState] = {}  # those that are gone, too

    def __contains__(self, name: str) -> bool:
        return name in self._rooms

    @property
    def free_tokens(self) -> dict[str, int]:
        return {name: room.free_tokens for name, room in self._rooms.items()}

    @property
    def largest(self) -> int:
        """Tokens the largest instance holds when it is empty."""
        return max((self._added[name].kv_tokens for name in self._rooms), default=0)

    def add(self, state: InstanceState) -> None:
        if state.name in self._added:
            raise ValueError(
                f"there is or was an instance {state.name!r}; give the new one another name, "
                "so that late news of the old one is not taken for its"
            )
        self._rooms[state.name] = Room(
            number=len(self._added),
            free_tokens=state.kv_tokens,
            free_rows=state.max_running,
            shares_prompts=state.shares_prompts,
        )
        self._added[state.name] = state
        self._rank(state.name)

    def remove(self, name: str) -> list[str]:
        """Take an instance out; the requests that ran there. None did if it is gone already."""
        if name not in self._added:
            raise ValueError(f"there is no instance {name!r}; there are {', '.join(self._rooms) or 'none'}")
        room = self._rooms.pop(name, None)
        self._order.remove(name)
        return [] if room is None else [*room.running]

    def best(self, ask: Ask, tokens: int, *, last: str | None, home: str | None) -> str | None:
        """Where a request with so many tokens behind its prompt fits: most room first, `last` among equals.

        If it does not fit there, it may where a sibling holds the prompt already.
        """
        name = self._order.first()
        if name is None:
            return None
        room = self._rooms[name]
        if not room.fits(ask, tokens):
            beside = self._rooms.get(home) if home is not None else None
            return home if beside is not None and beside.fits(ask, tokens) else None
        equal = self._rooms.get(last) if last is not None else None
        if equal is not None and equal.free_tokens == room.free_tokens and equal.free_rows > 0:
            return last
        return name

    def least_loaded(self) -> str | None:
        return self._order.first()

    def take(self, dispatch: Dispatch) -> None:
        room = self._rooms[dispatch.instance]
        room.free_tokens -= room.need(dispatch.ask, reserved_tokens(dispatch))
        room.free_rows -= 1
        room.running[dispatch.ask.id] = None
        room.siblings[dispatch.ask.group] += 1
        self._rank(dispatch.instance)

    def give_back(self, dispatch: Dispatch) -> None:
        room = self._rooms[dispatch.instance]
        room.siblings[dispatch.ask.group] -= 1  # the last one to leave gives back the prompt
        room.free_tokens += room.need(dispatch.ask, reserved_tokens(dispatch))
        if not room.siblings[dispatch.ask.group]:
            del room.siblings[dispatch.ask.group]
        room.free_rows += 1
        del room.running[dispatch.ask.id]
        self._rank(dispatch.instance)

    def _rank(self, name: str) -> None:
        room = self._rooms[name]
        self._order.put(name, (int(room.free_rows < 1), -room.free_tokens, room.number))


def reserved_tokens(dispatch: Dispatch) -> int:
    """What a chunk may come to hold beside its prompt: what is generated, and the chunk itself."""
    return dispatch.generated + dispatch.max_tokens
