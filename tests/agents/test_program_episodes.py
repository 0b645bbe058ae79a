"""Programs that own their loop: their records hold what was drawn, whatever their timing and whatever they do."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from small_programs import (
    MAX_LENGTH,
    Refused,
    ask,
    flat_groups,
    fleet_of,
    play,
    right,
    user,
)
from small_worlds import MAX_NEW, TOKENIZER, problems, spec_of

from foresail.agents.environment import Observation
from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.program import Agent
from foresail.chat.reply import cut_at
from foresail.records import Message, Problem
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.stream import sample_all

STOP = ["a", "!!"]
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (NativeInstance, {"policy": "group"}),
    (NativeInstance, {"policy": "context", "chunk_tokens": 3}),
    (DraftingInstance, {"policy": "fifo", "chunk_tokens": 4}),
]


def world(problem_id: str, response: str) -> str | None:
    """What is said to a response, as a tool's message; None at the end."""
    numbers = random.Random(f"{problem_id} {response}")
    return None if numbers.random() < 0.3 else numbers.choice(["1", "2 1", "<|assistant|>", "é"])


class Talk:
    async def reset(self, problem: Problem) -> None:
        self.problem = problem

    async def step(self, response: str) -> Observation:
        said = world(self.problem.id, response)
        return Observation(messages=(Message(role="tool", content=said),)) if said else Observation(done=True)

    async def close(self) -> None: ...


def talk(agent: Agent) -> None:
    """The same as a program."""
    messages: list[Any] = agent.messages
    while True:
        message = ask(agent, messages)["message"]
        said = world(agent.problem.id, message["content"])
        if said is None:
            return
        messages = [*messages, message, {"role": "tool", "tool_call_id": "x", "content": said}]


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_an_episode_is_the_same_through_an_environment(kind: Any, settings: dict[str, Any]) -> None:
    environments = Environments(Talk, step_seconds=300)
    stream = partial(EpisodeStream, environments=environments, tokenizer=TOKENIZER, max_turns=5)
    groups = {
        group.problem.id: group
        for group in sample_all(fleet_of(), problems(8), spec_of(), right, stream=stream)
    }
    environments.close()
    played = play(talk, count=8, fleet=fleet_of(kind, **settings))
    assert flat_groups(played) == flat_groups(groups)
    finishes = [[sample.finish for sample in group.samples] for group in groups.values()]
    assert finishes == [[sample.finish for sample in played[name].samples] for name in groups]
    turns = Counter(sample.turns[-1] for group in groups.values() for sample in group.samples)
    assert len(turns) > 2 and not any(group.failed for group in played.values())


# A program that does anything.


class Wild:
    """Goes on, forks, repeats and begins anew, as its own numbers say; with pauses, and some requests at once."""

    def __init__(self, slowest: float = 0.0, at_once: int = 1) -> None:
        self.slowest, self.at_once = slowest, at_once
        self.pause = random.Random(slowest)
        self.replies: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()  # of those with stops
        self.open = self.most_open = 0
        self.lock = threading.Lock()

    def __call__(self, agent: Agent) -> str:
        with self.lock:
            self.open += 1
            self.most_open = max(self.open, self.most_open)
        try:
            return self.act(agent)
        finally:
            with self.lock:
                self.open -= 1

    def act(self, agent: Agent) -> str:
        numbers = random.Random(agent.problem.id)
        known: list[Any] = [agent.messages]
        for _ in range(4):
            wanted = [self.choose(numbers, known) for _ in range(self.at_once)]
            with ThreadPoolExecutor(self.at_once) as threads:
                found = [*threads.map(partial(self.turn, agent), wanted)]
            known += [messages for messages in found if messages is not None]
        last = self.turn(agent, ([*known[-1], user("end")] if len(known) > 1 else [user("end")], {}))
        return "none" if last is None else last[-1]["content"]

    def choose(self, numbers: random.Random, known: list[Any]) -> Any:
        options: dict[str, Any] = {"max_tokens": numbers.randint(1, 9)} if numbers.random() < 0.8 else {}
        options |= {"stop": STOP} if numbers.random() < 0.2 else {}
        where, text = numbers.randrange(len(known)), numbers.choice(["1", "2", "1 2 <|user|>"])
        history = known[where]
        if where == 0:
            return ([*history] if numbers.random() < 0.5 else [user(text)]), options
        if numbers.random() < 0.2:  # rewritten
            history = [*history[:-1], {"role": "assistant", "content": history[-1]["content"] + "x"}]
        return [*history, user(text)], options

    def turn(self, agent: Agent, wanted: Any) -> Any:
        messages, options = wanted
        with self.lock:
            seconds = self.pause.random() * self.slowest
        time.sleep(seconds)
        try:
            message = ask(agent, messages, **options)["message"]
        except Refused as refused:
            if refused.error["code"] != "context_length_exceeded":
                raise
            return None
        with self.lock:
            (self.cut if "stop" in options else self.replies)[message["content"]] += 1
        return [*messages, message]


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_records_hold_what_was_replied_and_nothing_else(kind: Any, settings: dict[str, Any]) -> None:
    wild = Wild()
    groups = play(wild, fleet=fleet_of(kind, **settings), max_turns=20, count=8, num_samples=2)
    drawn: Counter[str] = Counter()
    branches = 0
    for group in groups.values():
        for sample in group.samples:
            branches += len(sample.branches)
            for record in sample.records:
                assert len(record.ids) <= MAX_LENGTH
                assert len(record.ids) - record.loss_mask.index(1) <= MAX_NEW
                for turn in read_trajectory(TOKENIZER, record).turns:
                    drawn[turn.response] += 1
    assert branches > 10 and wild.replies.total() > 20 and wild.cut.total() > 5
    assert not wild.replies - drawn
    assert Counter(cut_at(text, STOP) for text in (drawn - wild.replies).elements()) == wild.cut


def test_thirty_two_programs_at_once_get_what_they_get_alone() -> None:
    alone, together = Wild(), Wild(slowest=0.02)
    expected = flat_groups(play(alone, max_turns=20, count=8, num_samples=4, most=1))
    found = flat_groups(
        play(together, max_turns=20, count=8, num_samples=4, most=32, fleet=fleet_of(*KINDS[1][:1]))
    )
    assert found == expected
    assert alone.most_open == 1 and together.most_open > 16


@pytest.mark.parametrize("slowest", [0.002, 0.02])
def test_requests_of_one_program_at_once_do_not_depend_on_their_order(slowest: float) -> None:
    """Equal requests may change places; all others keep their tokens, and the records their cuts."""

    def strip(groups: Any) -> Any:
        return {name: [sorted(sample) for sample in samples] for name, samples in flat_groups(groups).items()}

    expected = strip(play(Sorted(), max_turns=20, count=6, num_samples=2))
    assert strip(play(Sorted(slowest, 3), max_turns=20, count=6, num_samples=2)) == expected


class Sorted(Wild):
    """Three different requests a round, at once or one after the other."""

    def act(self, agent: Agent) -> str:
        numbers = random.Random(agent.problem.id)
        known: list[Any] = [agent.messages]
        for _ in range(2):
            wanted = [([*numbers.choice(known), user(text)], {"max_tokens": 3}) for text in ("1", "2", "1 2")]
            with ThreadPoolExecutor(self.at_once) as threads:
                known = [found for found in threads.map(partial(self.turn, agent), wanted) if found] or known
        return str(self.turn(agent, ([user("end")], {"max_tokens": 3})))


def test_figures_are_those_of_all_episodes() -> None:
    figures = EpisodeFigures()
    groups = play(Wild(), max_turns=20, figures=figures)
    found = figures.take()
    samples = [sample for group in groups.values() for sample in group.samples]
    turns = sum(record.turns[-1] + 1 for sample in samples for record in sample.records)
    assert found["agent/turns/mean"] == pytest.approx(turns / len(samples))
    records = sum(len(sample.records) for sample in samples)
    assert found["agent/records/mean"] == pytest.approx(records / len(samples))
    assert 0 < found["agent/waiting/share"] <= 1
