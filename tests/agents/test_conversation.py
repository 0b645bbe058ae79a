"""Conversations as trees: what continues what, whose noise is whose, and which records come of it."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from foresail.agents.programs.chat_request import ChatRequest
from foresail.agents.programs.conversation import ChatTurn, Conversation
from foresail.chat.request import ChatMessage
from foresail.engine.request import Completion, Request
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.groups import to_sample

OWN = (1, 2, 3)


def says(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=text)  # type: ignore[arg-type]


def tokens(text: str) -> tuple[int, ...]:
    return tuple(text.encode())


class Play:
    """A conversation whose responses follow from their noise and prompt."""

    def __init__(self) -> None:
        self.conversation = Conversation(key=7, own_prompt=OWN)

    def ask(self, *messages: ChatMessage, prompt: tuple[int, ...] | None = None, tools: str = "") -> ChatTurn:
        request = ChatRequest(messages=messages, tools=tools)
        found = self.conversation.find(request)
        parent = None if found is None else found[0]
        if prompt is None:
            new = messages if found is None else found[1]
            prompt = () if parent is None else parent.ids
            prompt += tokens("".join(message.content for message in new))
        turn = self.conversation.begin(request, prompt, parent=parent, limit=100)
        if parent is not None and parent.is_open:
            parent.is_open = False
        turn.is_open = True
        numbers = random.Random(f"{turn.key} {turn.prompt}")
        ids = [numbers.randrange(97, 100) for _ in range(3)]
        completion = Completion(
            request=Request(id="r", prompt=turn.prompt, key=turn.key, sampling=Sampling()),
            ids=ids, logprobs=[0.0] * 3, versions=[0] * 3, finish="stop",
        )  # fmt: skip
        self.conversation.end(turn, completion, says("assistant", bytes(ids).decode()))
        return turn

    def reply(self, turn: ChatTurn) -> tuple[ChatMessage, ...]:
        """The messages of a turn with our response."""
        assert turn.completion is not None
        return (*turn.asked.messages, says("assistant", bytes(turn.completion.ids).decode()))

    def records(self) -> list[tuple[list[int], list[int]]]:
        samples = [to_sample(*record) for record in self.conversation.records()]
        return [(sample.ids, sample.loss_mask) for sample in samples]


def test_what_continues_goes_on_and_what_rewrites_begins_anew() -> None:
    play = Play()
    first = play.ask(says("user", "a"))
    second = play.ask(*play.reply(first), says("tool", "b"))
    assert second.parent is first and second.prompt == (*first.ids, *tokens("b")) and second.key == first.key
    rewritten = (says("user", "a!"), *play.reply(first)[1:])
    for messages in (rewritten, (*play.reply(first), says("system", "c")), (says("user", "z"),)):
        assert play.conversation.find(ChatRequest(messages=(*messages, says("user", "d")))) is None
    told = ChatRequest(messages=(*play.reply(first), says("user", "c")), tools="[1]")
    assert play.conversation.find(told) is None
    third = play.ask(*rewritten, says("user", "d"))
    assert third.parent is None and third.key not in (first.key, 7)
    assert [mask for _, mask in play.records()][1] == [0] + [1] * 3 + [0] + [1] * 3


def test_the_problems_own_prompt_has_the_episodes_own_noise_once() -> None:
    play = Play()
    own, other, again = (play.ask(says("user", "a"), prompt=prompt) for prompt in (OWN, (9,), OWN))
    assert own.key == 7 and len({own.key, other.key, again.key}) == 3


def test_a_fork_goes_on_behind_the_same_tokens() -> None:
    play = Play()
    root = play.ask(says("user", "a"))
    left, right = (play.ask(*play.reply(root), says("user", text)) for text in "bc")
    assert left.parent is root and right.parent is root and not root.is_open and right.is_open
    assert right.prompt[:4] == root.ids and right.key == root.key  # as if it had come first
    same = play.ask(*play.reply(root), says("user", "c"))
    assert same.prompt == right.prompt and same.key != right.key
    assert sum(sum(mask) for _, mask in play.records()) == 4 * 3


def random_requests(play: Play, numbers: random.Random, count: int) -> None:
    for _ in range(count):
        known = play.conversation.turns
        new = says(numbers.choice(["user", "tool"]), numbers.choice("uvw"))
        if not known or numbers.random() < 0.25:
            play.ask(says("user", numbers.choice("ab")))
        else:
            play.ask(*play.reply(numbers.choice(known)), new)


@pytest.mark.parametrize("seed", range(30))
def test_every_token_that_was_drawn_is_in_one_record_once(seed: int) -> None:
    play = Play()
    random_requests(play, random.Random(seed), 12)
    drawn: Counter[tuple[int, ...]] = Counter()
    for ids, mask in play.records():
        assert len(ids) == len(mask) and mask[0] == 0 and mask[-1] == 1
        for place, (before, now) in enumerate(pairwise(mask), start=1):
            if (before, now) == (0, 1):
                drawn[tuple(ids[: place + 3])] += 1
    assert drawn == Counter(turn.ids for turn in play.conversation.turns)
    last = play.conversation.turns[-1]
    assert tuple(play.records()[0][0][: len(last.ids)]) == last.ids


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_requests_that_do_not_wait_for_each_other_changes_nothing(seed: int) -> None:
    """Rounds of requests at once, each behind some turn of the round before; the last request is alone."""
    found = []
    for shuffle in range(4):
        order, play = random.Random(f"{seed} {shuffle}"), Play()
        numbers, known = random.Random(seed), [play.ask(says("user", "a"))]
        for _ in range(3):
            wanted = [(numbers.randrange(len(known)), numbers.choice("uvwx")) for _ in range(3)]
            wanted = [*dict.fromkeys(wanted)]
            turns = {}
            for place, text in order.sample(wanted, len(wanted)):
                turns[place, text] = play.ask(*play.reply(known[place]), says("user", text))
            known = [turns[entry] for entry in wanted]
        play.ask(*play.reply(known[0]), says("user", "!"))
        found.append(play.records())
    assert found[1:] == found[:-1]
