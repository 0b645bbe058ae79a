"""How programs that own their loop end, and what limits them: verdicts, time, keys, room, stops."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from small_programs import (
    MAX_LENGTH,
    Refused,
    ask,
    fleet_of,
    play,
    post,
    user,
)
from small_worlds import MAX_NEW, TOKENIZER, problems

from foresail.agents.programs.episodes import ProgramStream
from foresail.agents.programs.program import Agent
from foresail.records import Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.native import NativeInstance

STOP = ["a", "!!"]


# How a program ends.


def seen(seen_by: list[str], problem: Problem, sample: Sample) -> Any:
    seen_by.append(read_trajectory(TOKENIZER, sample).response)
    return settled(Verdict(status="wrong", score=0.0))


@pytest.mark.parametrize("said", ["42", "", None])
def test_text_is_graded_and_none_leaves_the_last_response(said: str | None) -> None:
    responses: list[str] = []
    replies: list[str] = []

    def program(agent: Agent) -> str | None:
        assert agent.problem.answer == ""
        ask(agent, [user("1")], max_tokens=3)
        replies.append(ask(agent, agent.messages)["message"]["content"])
        return said

    play(program, judge=partial(seen, responses))
    assert sorted(responses) == sorted(replies if said is None else [said] * 12)


@pytest.mark.parametrize(
    ("said", "status", "score"),
    [(1.0, "correct", 1.0), (0.25, "wrong", 0.25), ({"score": 0.5, "acc": 1}, "correct", 0.5),
     (True, "correct", 1.0), ([1, 2], "crashed", 0.0), (float("nan"), "crashed", 0.0), (object(), "crashed", 0.0)],
)  # fmt: skip
def test_a_number_is_the_reward(said: Any, status: str, score: float) -> None:
    async def program(agent: Agent) -> Any:
        await asyncio.to_thread(ask, agent, agent.messages)
        return said

    for group in play(program, count=2).values():
        assert [(verdict.status, verdict.score) for verdict in group.verdicts] == [(status, score)] * 3


def crash(agent: Agent) -> None:
    ask(agent, agent.messages)
    if agent.problem.id in ("p1", "p3"):
        raise KeyError("lost")


def test_a_program_that_raises_is_a_failed_verdict_and_concerns_nobody_else() -> None:
    groups = play(crash)
    assert {name for name, group in groups.items() if group.failed} == {"p1", "p3"}
    for verdict in groups["p1"].verdicts:
        assert (
            verdict.status == "crashed"
            and "program: KeyError: 'lost' (test_program_endings.py" in verdict.detail
        )


@pytest.mark.parametrize("program", [lambda agent: "42", lambda agent: exit(0), lambda agent: None])
def test_a_program_that_asks_nothing_has_failed(program: Any) -> None:
    for group in play(program, count=2).values():
        assert group.failed and all(sample.num_response_tokens == 0 for sample in group.samples)
        assert all(read_trajectory(TOKENIZER, sample).response == "" for sample in group.samples)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The stream's clock, which stands still unless somebody moves it: no machine is too busy for it."""
    clock = SimpleNamespace(now=1.0)
    clock.monotonic = lambda: clock.now
    for module in ("episode", "episodes", "program"):
        monkeypatch.setattr(f"foresail.agents.programs.{module}.time", clock)
    return clock


def test_a_program_that_hangs_is_a_time_out_and_holds_up_nobody_else(clock: SimpleNamespace) -> None:
    """One place for three programs, of which the first hangs."""
    free, hung = threading.Event(), []

    def program(agent: Agent) -> None:
        ask(agent, agent.messages)
        if not hung:
            hung.append(agent)
            clock.now += 6
            free.wait(300)

    verdicts = play(program, turn_seconds=5.0, most=1, count=1)["p0"].verdicts
    free.set()
    assert sorted(verdict.status for verdict in verdicts) == ["correct", "correct", "timeout"]
    details = {verdict.detail for verdict in verdicts if verdict.status == "timeout"}
    assert details == {"program: it asked nothing for 5 s, ten times environment.step_seconds"}


def test_waiting_for_busy_engines_is_nobodys_time_out(clock: SimpleNamespace) -> None:
    class Slow(NativeInstance):
        def step(self) -> Any:
            clock.now += 100
            return super().step()

    def program(agent: Agent) -> None:
        messages: list[Any] = agent.messages
        for _ in range(3):
            messages = [*messages, ask(agent, messages, max_tokens=5)["message"], user("1")]

    group = play(program, turn_seconds=5.0, fleet=fleet_of(Slow), count=1, num_samples=1)["p0"]
    assert not group.failed and clock.now > 500


def test_a_request_that_nobody_waits_for_is_drawn_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"1 2 0": threading.Event(), "1 2 1": threading.Event()}
    take_up = ProgramStream._ask

    def signal(stream: Any, episode: str, request: Any) -> Any:
        reply = take_up(stream, episode, request)
        if (event := there.get(request.messages[0].content)) is not None:
            event.set()
        return reply

    monkeypatch.setattr(ProgramStream, "_ask", signal)

    def program(agent: Agent) -> str:
        ask(agent, agent.messages)
        text = f"1 2 {agent.problem.id[1]}"

        def leave() -> None:
            with suppress(Refused, OSError):
                ask(agent, [user(text)])

        threading.Thread(target=leave, daemon=True).start()
        there[text].wait(300)
        return "42"

    groups = play(program, count=2, num_samples=1)
    assert {len(sample.records) for group in groups.values() for sample in group.samples} == {2}


# Keys and limits.


def test_a_key_ends_with_its_episode_and_opens_no_other() -> None:
    gone: list[Agent] = []

    def program(agent: Agent) -> None:
        ask(agent, agent.messages)
        gone.append(agent)

    def late(agent: Agent) -> None:
        with pytest.raises(Refused) as refused:
            post(f"{agent.base_url}/chat/completions", gone[0].api_key, b"{}")
        assert refused.value.status == 401 and refused.value.error["code"] == "invalid_api_key"
        for key in ("", "sk-guess", f"{agent.api_key}x"):
            with pytest.raises(Refused, match="401"):
                post(f"{agent.base_url}/chat/completions", key, b"{}")
        ask(agent, agent.messages)

    play(program, count=1)
    assert not play(late, count=1)["p0"].failed


@pytest.mark.parametrize("catches", [True, False])
def test_limits_cut_an_episode_and_are_no_failure(catches: bool) -> None:
    codes: list[tuple[int, str]] = []

    def program(agent: Agent) -> str:
        messages: list[Any] = agent.messages
        while True:
            try:
                messages = [*messages, ask(agent, messages, max_tokens=2)["message"], user("1")]
            except Refused as refused:
                codes.append((refused.status, refused.error["code"]))
                if catches:
                    return "42"
                raise

    for max_turns, code in ((3, "max_turns_exceeded"), (100, "context_length_exceeded")):
        for group in play(program, max_turns=max_turns, count=2).values():
            for sample, verdict in zip(group.samples, group.verdicts, strict=True):
                assert sample.finish == "length" and verdict.status == "correct"
                assert sample.outcome == ("42" if catches else None)
                assert len(sample.ids) - sample.loss_mask.index(1) <= MAX_NEW and sample.loss_mask[-1] == 1
        assert set(codes) == {(400, code)}
        codes.clear()


def test_a_long_prompt_has_less_room_and_a_longer_one_none() -> None:
    def program(agent: Agent) -> None:
        with pytest.raises(Refused, match="leave no room"):
            ask(agent, [user("1 " * 60)])
        ask(agent, [user("1 " * 30)])

    for group in play(program, count=2).values():
        assert all(40 < len(sample.ids) <= MAX_LENGTH for sample in group.samples)
        assert not group.failed


def test_an_error_after_a_refusal_that_was_dealt_with_is_a_failure() -> None:
    def program(agent: Agent) -> None:
        with pytest.raises(Refused, match="leave no room"):
            ask(agent, [user("1 " * 60)])
        ask(agent, agent.messages)
        raise KeyError("lost")

    assert {verdict.status for verdict in play(program, count=1)["p0"].verdicts} == {"crashed"}


def test_a_step_that_closes_gives_up_programs_that_still_run() -> None:
    from foresail.rollout.collect import collect, gradable
    from foresail.rollout.controller import Controller

    refused: list[int] = []
    closed = threading.Event()

    def program(agent: Agent) -> None:
        ask(agent, agent.messages)
        if agent.problem.id not in ("p0", "p1"):
            closed.wait(300)
            try:
                ask(agent, agent.messages)
            except (Refused, OSError) as error:
                refused.append(getattr(error, "status", 0))

    fleet = fleet_of()

    def first_two(fleet: Any, listed: Any, group_spec: Any, judge: Any, *, stream: Any) -> Any:
        collected = collect(
            fleet,
            problems(6).__getitem__,
            group_spec,
            judge,
            controller=Controller(num_groups=2, cap=6, share_before=0.34),
            usable=gradable,
            stream=stream,
        )
        closed.set()
        assert collected.num_cancelled >= 1
        return collected.launched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("small_programs.sample_all", first_two)
        assert [*play(program, fleet=fleet)] == ["p0", "p1"]
    fleet.update_weights(1)


def test_tool_calls_go_out_and_come_back_as_a_continuation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model writes at random, so its text is replaced by a call on its way to the program."""
    text = 'So:\n<tool_call>\n{"name": "add", "arguments": {"b": 2, "a": "é"}}\n</tool_call>'
    monkeypatch.setattr(TOKENIZER, "decode", lambda ids, **options: text)
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]

    def program(agent: Agent) -> str:
        reply = ask(agent, agent.messages, tools=tools, max_tokens=3)
        assert reply["finish_reason"] == "tool_calls" and reply["message"]["content"] == "So:"
        call = reply["message"]["tool_calls"][0]
        call["function"]["arguments"] = '{"a":"\\u00e9","b":2}'  # as a client writes it that has read it
        answer = {"role": "tool", "tool_call_id": call["id"], "content": "4"}
        ask(agent, [*agent.messages, reply["message"], answer], tools=tools, max_tokens=3)
        return "42"

    for group in play(program, count=2).values():
        assert [len(sample.records) for sample in group.samples] == [1] * 3
        assert [sample.turns[-1] for sample in group.samples] == [1] * 3


def test_special_tokens_in_a_rewritten_history_mean_nothing() -> None:
    special = {TOKENIZER.encode(text)[0]: text for text in TOKENIZER.special_tokens()}

    def program(agent: Agent) -> None:
        for text in (random.Random(agent.problem.id).choice([*special.values()]), "b"):
            ask(agent, [user(text), {"role": "assistant", "content": text}, user("1")], max_tokens=2)

    for group in play(program).values():
        for sample in group.samples:
            forged, plain = (
                [number for number in record.ids[: record.loss_mask.index(1)] if number in special]
                for record in (sample.branches[0], sample)
            )
            assert forged == plain and len(plain) > 2


def test_stops_are_cut_from_the_text_and_kept_in_the_record() -> None:
    texts: list[str] = []

    def program(agent: Agent) -> None:
        texts.append(ask(agent, agent.messages, stop="s", logprobs=True)["message"]["content"])

    groups = play(program)
    assert all("s" not in text for text in texts)
    responses = [
        read_trajectory(TOKENIZER, sample).response for group in groups.values() for sample in group.samples
    ]
    assert any("s" in response for response in responses)
    assert all(response.count("s") <= 2 for response in responses)


def test_programs_cannot_name_stops_without_end() -> None:
    def program(agent: Agent) -> None:
        for number in range(70):
            ask(agent, [user("1")], stop=[f"{number}!"], max_tokens=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foresail.agents.programs.episodes.MAX_STOP_SETS", 5)
        verdict = play(program, count=1, num_samples=1, max_turns=100)["p0"].verdicts[0]
    assert verdict.status == "crashed" and "sets of stop texts" in verdict.detail
