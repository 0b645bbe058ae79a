"""The chat turns of one program as a tree, and the training records made from it.

A request continues a turn when its messages are exactly those of that turn, with the response as it was returned,
followed by new ones of the user or of tools. Its tokens then follow the turn's. Any other history is a new root.
Two requests that continue the same turn fork there:

    system, user "2+2?"  ->  turn 0 "4"  + user "sure?"  ->  turn 1 "yes"
                                         + user "why?"   ->  turn 2 "so"

    records: turn 0 and turn 1; then turn 2 alone, behind the tokens of turn 0 with loss mask 0.

Every turn is in one record, so every sampled token is trained on once. The order of requests changes no token; it
changes records only through which turn is the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from foresail.agents.programs.chat_request import ChatRequest
from foresail.chat.request import ChatMessage
from foresail.engine.noise import branch_key
from foresail.engine.request import Completion

History = tuple[str, tuple[ChatMessage, ...]]  # the tools it may call, and all messages


@dataclass(kw_only=True, eq=False)
class ChatTurn:
    """A request, and its completion once it is answered. `limit` counts all tokens after the root's prompt."""

    parent: ChatTurn | None
    prompt: tuple[int, ...]
    key: int
    root_tokens: int
    limit: int
    asked: ChatRequest
    completion: Completion | None = None
    request_id: str = ""  # in the fleet; a turn that extends its parent's request has the parent's id
    is_open: bool = False  # the fleet holds the request, so that the next turn can extend it

    @property
    def ids(self) -> tuple[int, ...]:
        assert self.completion is not None, "it has not ended"
        return (*self.prompt, *self.completion.ids)

    @property
    def left(self) -> int:
        """Tokens that may follow the prompt."""
        return self.limit - (len(self.prompt) - self.root_tokens)


@dataclass(kw_only=True)
class Conversation:
    """The turns of one episode, in the order of their requests. `key` is the sample's noise key."""

    key: int
    own_prompt: tuple[int, ...]  # the problem's prompt; the branch that begins with it uses `key`
    turns: list[ChatTurn] = field(default_factory=list)
    asked: Counter[tuple[int, tuple[int, ...]]] = field(default_factory=Counter)
    by_history: dict[History, list[ChatTurn]] = field(default_factory=dict)

    def find(self, request: ChatRequest) -> tuple[ChatTurn, tuple[ChatMessage, ...]] | None:
        """The turn that a request continues, and the messages that are new."""
        responses = [place for place, message in enumerate(request.messages) if message.role == "assistant"]
        if not responses:
            return None
        known, new = request.messages[: responses[-1] + 1], request.messages[responses[-1] + 1 :]
        turns = self.by_history.get((request.tools, known))
        if not turns or any(message.role == "system" for message in new):
            return None
        return next((turn for turn in turns if turn.is_open), turns[0]), new

    def begin(
        self, request: ChatRequest, prompt: Sequence[int], *, parent: ChatTurn | None = None, limit: int
    ) -> ChatTurn:
        """Add an unanswered turn; `limit` is used for a new root only."""
        prompt = tuple(prompt)
        turn = ChatTurn(
            parent=parent,
            prompt=prompt,
            key=self._key(prompt, parent),
            root_tokens=len(prompt) if parent is None else parent.root_tokens,
            limit=limit if parent is None else parent.limit,
            asked=request,
        )
        self.turns.append(turn)
        return turn

    def _key(self, prompt: tuple[int, ...], parent: ChatTurn | None) -> int:
        """A turn's noise key: it depends on the prompt and how often it was asked before, not on timing."""
        before = self.key if parent is None else parent.key
        count = self.asked[before, prompt]
        self.asked[before, prompt] += 1
        inherits = parent is not None or prompt == self.own_prompt
        return before if inherits and not count else branch_key(before, prompt, count)

    def end(self, turn: ChatTurn, completion: Completion, response: ChatMessage) -> None:
        turn.completion = completion
        history = (turn.asked.tools, (*turn.asked.messages, response))
        self.by_history.setdefault(history, []).append(turn)

    def records(self) -> list[list[Completion]]:
        """Paths of turns, each turn in one of them; the path of the last request comes first."""
        path: set[int] = set()
        last: ChatTurn | None = self.turns[-1] if self.turns else None
        while last is not None:
            path.add(id(last))
            last = last.parent
        following: dict[int, list[ChatTurn]] = {}
        for turn in sorted(self.turns, key=lambda turn: (id(turn) not in path, turn.prompt, turn.key)):
            following.setdefault(id(turn.parent), []).append(turn)
        starts, records = [*following.pop(id(None), [])], []
        for start in starts:  # grows where turns fork
            record: list[ChatTurn] = [start]
            while (after := following.get(id(record[-1]))) is not None:
                record.append(after[0])
                starts += after[1:]
            records.append([turn.completion for turn in record if turn.completion is not None])
        return records
