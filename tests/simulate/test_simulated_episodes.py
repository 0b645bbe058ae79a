"""Simulated episodes: who waits for a tool has no slot, none is lost, and the time lies between two bounds."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from small_simulations import COST, run_one, small

from foresail.simulate.clock import VirtualClock
from foresail.simulate.engine import Machine, RunningChunk, SimulatedEngine
from foresail.simulate.episodes import EpisodeCount
from foresail.simulate.settings import Simulation
from foresail.simulate.step import SimulatedStep, StepResult
from foresail.simulate.tools import SimulatedTurn, ToolDraws, Tools
from foresail.simulate.workloads import Problems, Workload, ends_of

CASES = range(12)


def case(seed: int) -> Simulation:
    """Few slots, room for all of them, and tools of any speed."""
    numbers = random.Random(seed)
    max_turns, max_seconds = numbers.randint(2, 8), 10 ** numbers.uniform(-2, 1.5)
    return small(
        seed=seed,
        cluster={
            "instances": numbers.randint(1, 3),
            "max_running": numbers.randint(1, 8),
            "weight_gb": 100.0,
        },
        workload={
            "groups": numbers.randint(1, 12),
            "mean_tokens": numbers.randint(5, 100),
            "max_tokens": 200,
            "tools": {
                "mean_turns": numbers.uniform(1, max_turns),
                "max_turns": max_turns,
                "tokens": numbers.randint(1, 300),
                "mean_seconds": numbers.uniform(0, max_seconds),
                "max_seconds": max_seconds,
            },
        },
        rollout={
            "policy": numbers.choice(["fifo", "context", "oracle"]),
            "chunk_tokens": numbers.choice([None, 16, 64]),
        },
        speculation=numbers.choice([None, None, {}]),
    )


def run(simulation: Simulation) -> tuple[StepResult, EpisodeCount, Problems]:
    problems = Problems(simulation.workload, seed=simulation.seed, step=0)
    result = SimulatedStep(simulation, COST, problems, 1.0).run()
    assert result.episodes is not None
    return result, result.episodes, problems


def planned(simulation: Simulation, problems: Problems) -> list[tuple[SimulatedTurn, ...]]:
    return [turns for group in range(simulation.workload.groups) for turns in problems[group].turns]


@pytest.mark.parametrize("seed", CASES)
def test_every_episode_ends_once_with_all_its_turns_and_tokens(seed: int) -> None:
    result, count, problems = run(simulation := case(seed))
    episodes = planned(simulation, problems)
    assert count.episodes == len(episodes)
    assert count.turns == sum(map(len, episodes))
    assert result.tokens == sum(turn.tokens for turns in episodes for turn in turns)
    assert result.chosen == simulation.workload.groups and result.cancelled_groups == 0
    assert result.computed_again == 0 or len(result.history) > 1  # else what a turn left is found again
    assert count.places[-1][1:] == (0, 0, 0)


@pytest.mark.parametrize("seed", CASES)
def test_no_slot_is_free_while_an_episode_waits_for_one_and_none_is_taken_at_a_tool(seed: int) -> None:
    result, count, problems = run(simulation := case(seed))
    slots = simulation.cluster.instances * simulation.cluster.max_running
    total = len(planned(simulation, problems))
    for place in count.places[1:]:
        assert place.running == slots if place.queued else place.running <= slots
        assert place.running + place.queued + place.at_tools <= total
    waited = sum(before.at_tools * (after.moment - before.moment) for before, after in pairwise(count.places))
    seconds = sum(turn.tool_seconds for turns in planned(simulation, problems) for turn in turns)
    assert waited == pytest.approx(seconds)  # they come back in the moment they are answered
    assert count.tool_seconds == pytest.approx(seconds)
    busy = max(rows for history in result.history.values() for _, rows in history)
    assert busy <= simulation.cluster.max_running


@pytest.mark.parametrize("seed", CASES)
def test_the_time_lies_between_what_is_needed_and_a_loop_that_waits_for_each_batch(seed: int) -> None:
    simulation = case(seed)
    simulation = simulation.model_copy(
        update={
            "speculation": None,
            "cluster": simulation.cluster.model_copy(update={"instances": 1}),
            "rollout": simulation.rollout.model_copy(update={"chunk_tokens": None}),
        }
    )
    result, _, problems = run(simulation)
    episodes, rows = planned(simulation, problems), simulation.cluster.max_running
    alone = [sum(turn.tokens * COST.base(1) + turn.tool_seconds for turn in turns) for turns in episodes]
    work = sum(turn.tokens for turns in episodes for turn in turns) * COST.base(rows) / rows
    assert max(*alone, work) < result.seconds <= loop_seconds(episodes, simulation) * (1 + 1e-9)


def loop_seconds(episodes: list[tuple[SimulatedTurn, ...]], simulation: Simulation) -> float:
    """As many episodes as rows: all end their turn, all wait for the slowest tool; at the end the next batch."""
    clock, rows = VirtualClock(), simulation.cluster.max_running
    engine = SimulatedEngine(simulation.machine(COST), clock, lambda ended: None, {})
    for first in range(0, len(episodes), rows):
        batch = dict(enumerate(episodes[first : first + rows]))
        for turn in range(max(map(len, batch.values()))):
            under_way = {number: turns for number, turns in batch.items() if turn < len(turns)}
            for number, turns in under_way.items():
                end = simulation.workload.prompt_tokens + ends_of(turns)[turn]
                context, left = end - turns[turn].tokens, turns[turn].tokens
                new = turns[turn - 1].tool_tokens if turn else context
                engine.add(
                    RunningChunk(name=f"{number}", references=0, to_compute=new, context=context, left=left)
                )
            clock.run()
            clock.at(
                clock.now() + max(turns[turn].tool_seconds for turns in under_way.values()), lambda: None
            )
            clock.run()
    return clock.now()


def test_slow_tools_cost_a_loop_much_more_than_a_stream() -> None:
    tools = {"mean_turns": 3.0, "max_turns": 6, "mean_seconds": 5.0, "max_seconds": 20.0}
    work = {"groups": 40, "mean_tokens": 50, "max_tokens": 200, "tools": tools}
    simulation = small(
        cluster={"instances": 1, "max_running": 16, "weight_gb": 100.0},
        workload=work,
        rollout={"policy": "fifo"},
    )
    result, count, problems = run(simulation)
    assert loop_seconds(planned(simulation, problems), simulation) > 3 * result.seconds
    assert max(place.at_tools for place in count.places) > 16  # more wait than there are slots


def test_an_episode_that_its_tool_ends_waits_for_it() -> None:
    tools = {"mean_turns": 2.0, "max_turns": 2, "mean_seconds": 3.0, "max_seconds": 3.0}
    simulation = small(workload={"groups": 1, "samples": 1, "mean_tokens": 100, "tools": tools})
    problems = Problems(simulation.workload, seed=0, step=0)
    plain = SimulatedStep(simulation, COST, problems, 1.0).run()
    (first, last) = problems[0].turns[0]
    problems._groups[0] = replace(problems[0], turns=((first, last._replace(tool_seconds=7.0)),))
    asked = SimulatedStep(simulation, COST, problems, 1.0).run()
    assert asked.seconds == pytest.approx(plain.seconds + 7)
    assert asked.episodes is not None and asked.episodes.tool_seconds == pytest.approx(10)


def test_groups_that_are_given_up_leave_nothing_at_their_tools() -> None:
    work = {"groups": 6, "valid_share": 0.4, "mean_tokens": 100, "max_tokens": 300}
    tools = {"mean_turns": 3.0, "max_turns": 6, "mean_seconds": 2.0, "max_seconds": 20.0}
    cut = 0
    for seed in range(10):
        simulation = small(seed=seed, workload=work | {"tools": tools}, step={"launches": "continuous"})
        step = SimulatedStep(simulation, COST, Problems(simulation.workload, seed=seed, step=0), 0.4)
        result, stream = step.run(), step._stream
        assert result.chosen == 6
        assert not stream.fleet.busy and len(stream.fleet.pool) == 0
        assert not stream.at_tools and not stream.turns and not stream.began  # type: ignore[attr-defined]
        cut += result.cancelled_groups
    assert cut > 0


# What a turn leaves in the cache.


def engine(kv_tokens: int = 1000) -> tuple[SimulatedEngine, VirtualClock]:
    clock = VirtualClock()
    machine = Machine(kv_tokens=kv_tokens, max_running=4, cost=COST)
    return SimulatedEngine(machine, clock, lambda ended: None, {}), clock


def back_from_tool(name: str, kept: int) -> RunningChunk:
    return RunningChunk(name=name, references=0, to_compute=kept + 10, context=kept + 10, left=1, cached=kept)


def test_a_turn_finds_what_the_last_one_left_unless_rows_needed_the_place() -> None:
    place, clock = engine()
    place.keep("old", 400)
    place.keep("new", 300)
    place.add(
        RunningChunk(name="long", references=0, to_compute=0, context=400, left=90)
    )  # 490 of 1000: 190 too many
    clock.run()
    assert clock.now() == pytest.approx(90 * COST.fixed, rel=0.02)
    before = clock.now()
    place.add(back_from_tool("new", 300))
    clock.run()
    computed = (clock.now() - before - COST.step(entries=1, cached=310)) / COST.per_prefilled_token
    assert computed == pytest.approx(10, abs=0.1)  # the tool's answer alone
    place.add(back_from_tool("old", 400))
    clock.run()
    assert place.computed_again == pytest.approx(190, abs=1)
    place.add(back_from_tool("stranger", 50))  # it ran elsewhere before
    clock.run()
    assert place.computed_again == pytest.approx(240, abs=1)


def test_other_weights_leave_nothing() -> None:
    place, clock = engine()
    place.keep("a", 400)
    place.forget_turns()
    place.add(back_from_tool("a", 400))
    clock.run()
    assert place.computed_again == 400


def test_with_little_memory_turns_are_computed_again() -> None:
    tools = {"mean_turns": 4.0, "max_turns": 4, "tokens": 50, "mean_seconds": 1.0, "max_seconds": 2.0}
    work = {"groups": 12, "mean_tokens": 100, "max_tokens": 200, "tools": tools}
    roomy, tight = (
        run_one(cluster={"weight_gb": size, "instances": 1, "max_running": 8}, workload=work)
        for size in (100.0, 126.6)
    )
    assert roomy.computed_again == 0 < tight.computed_again
    assert roomy.tokens == tight.tokens


# What is drawn.


def test_turns_and_seconds_have_the_means_and_maxima_asked_for() -> None:
    tools = {"mean_turns": 3.0, "max_turns": 12, "tokens": 7, "mean_seconds": 2.0, "max_seconds": 30.0}
    work = Workload.model_validate(
        {"groups": 1, "samples": 8, "mean_tokens": 100, "max_tokens": 1000, "tools": tools}
    )
    problems = Problems(work, seed=0, step=0)
    episodes = [turns for group in range(2000) for turns in problems[group].turns]
    counts = np.array([*map(len, episodes)])
    assert counts.mean() == pytest.approx(3.0, rel=0.05)
    assert counts.min() == 1 and counts.max() == 12
    answers = [turn for turns in episodes for turn in turns[:-1]]
    seconds = np.array([turn.tool_seconds for turn in answers])
    assert seconds.mean() == pytest.approx(2.0, rel=0.05) and seconds.max() <= 30.0
    assert {turn.tool_tokens for turn in answers} == {7}
    assert all(turns[-1] == SimulatedTurn(turns[-1].tokens) for turns in episodes)
    assert np.mean([turn.tokens for turns in episodes for turn in turns]) == pytest.approx(100, rel=0.05)
    alike = np.corrcoef(counts.reshape(-1, 8)[:, 0], counts.reshape(-1, 8)[:, 1])[0, 1]
    assert alike > 0.6


@pytest.mark.parametrize(
    ("changes", "turns", "seconds"),
    [
        ({"mean_turns": 5, "mean_seconds": 3, "max_seconds": 3}, {5}, {3.0}),
        ({"mean_turns": 1, "mean_seconds": 0}, {1}, set()),
        ({"mean_turns": 5, "mean_seconds": 0, "max_seconds": 0}, {5}, {0.0}),
        ({"mean_turns": 5, "recorded_seconds": (0.5, 4.0)}, {5}, {0.5, 4.0}),
    ],
)
def test_one_distribution_has_what_is_fixed_and_what_was_recorded_in_it(
    changes: dict[str, Any], turns: set[int], seconds: set[float]
) -> None:
    draws, numbers = ToolDraws(Tools.model_validate({"max_turns": 5} | changes)), np.random.default_rng(0)
    counts = {draws.count_turns(share) for share in np.linspace(0.001, 0.999, 99)}
    assert counts == turns
    episodes = [draws.episode([1] * count, numbers) for count in [*counts] * 50]
    assert {turn.tool_seconds for episode in episodes for turn in episode[:-1]} == seconds


def test_tools_that_cannot_be_are_refused() -> None:
    for tools, words in (
        ({"mean_turns": 5, "max_turns": 4}, "mean_turns 5 is above workload.tools.max_turns 4"),
        (
            {"mean_turns": 2, "max_turns": 4, "mean_seconds": 20},
            "mean_seconds 20 is above workload.tools.max",
        ),
        (
            {"mean_turns": 2, "max_turns": 4, "recorded_seconds": [1, -1]},
            "recorded_seconds has a time below 0",
        ),
        ({"mean_turns": 2, "max_turns": 40}, "no memory for one request of .* or workload.tools.max_turns"),
    ):
        with pytest.raises(ValueError, match=words):
            small(workload={"tools": tools})
