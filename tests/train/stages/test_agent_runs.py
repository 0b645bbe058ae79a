"""Reinforcement learning of episodes: a world of one's own, through the whole stage."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agent_world import WORLD
from random_delays import drawn, steady_metrics
from small_runs import train, weights
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe

from foresail.api.evaluate import evaluate
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Rollout, Run, Sampling
from foresail.recipe.tables.reward import Reward, Term
from foresail.recipe.tables.sources import HeldOut
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from command_line import CommandLine


@pytest.fixture
def world(tmp_path: Path) -> str:
    (tmp_path / "my_world.py").write_text(WORLD)
    return f"{tmp_path}/my_world.py"


def test_two_deterministic_runs_are_equal_whichever_tool_answers_first(
    tiny_checkpoint: Path, tmp_path: Path, world: str
) -> None:
    """All but the times: what later groups did, when the step closed, depends on the machine."""
    one, other = (
        train(
            tiny_checkpoint,
            tmp_path / name,
            steps=3,
            run=Run(name="rl", root=str(tmp_path / name), device="cpu", deterministic=True),
            environment=Environment(name=f"{world}:{name}"),
            sampling=Sampling(max_new_tokens=2 * MAX_NEW),
            prompts_per_step=4,
            samples_per_prompt=4,
        )[0]
        for name in ("Late", "Later")
    )
    assert drawn(one.run) == drawn(other.run)
    found = steady_metrics(one.run)
    assert found == steady_metrics(other.run)
    assert any(record.get("agent/tool_errors/share", 0) > 0 for record in found)
    assert weights(one.checkpoint).equal(weights(other.checkpoint))


@pytest.mark.parametrize("rollout", [Rollout(), Rollout(drafts="on", chunk_tokens=3)])
def test_episodes_are_learned_from(
    tiny_checkpoint: Path, tmp_path: Path, world: str, rollout: Rollout
) -> None:
    outcome, records = train(
        tiny_checkpoint,
        tmp_path,
        steps=2,
        environment=Environment(name=f"{world}:Again"),
        sampling=Sampling(max_new_tokens=2 * MAX_NEW),
        rollout=rollout,
        eval=[HeldOut(source=HELD_OUT, limit=4)],
        eval_every=1,
    )
    run, tokenizer = RunDirectory(outcome.run), Tokenizer.load(tiny_checkpoint)
    rows = run.read_rollouts(1)
    said = tokenizer.encode("<|tool|>7<|assistant|>")
    assert any(row["finish"] == "stop" for row in rows)
    for row in rows:
        turns = row.get("turns", [])
        assert len(turns) == 2 or row["finish"] == "length"
        assert [turn["observation"] for turn in turns] == ["", "<|tool|>7<|assistant|>"][: len(turns)]
        if turns:
            first = row["loss_mask"].index(1)
            place = row["loss_mask"].index(0, first)  # where the world answers
            assert row["ids"][place : place + len(said)] == said
            assert row["loss_mask"][place : place + len(said)] == [0] * len(said)
            assert row["loss_mask"][place + len(said) :] == [1] * (len(row["ids"]) - place - len(said))
    assert 1 < records[0]["agent/turns/mean"] <= 2
    assert any("val-core" in name for name in records[0])
    assert all(record["rollout/logprob_abs_diff"] < 1e-4 for record in records)


def test_a_run_is_evaluated_in_its_world(
    tiny_checkpoint: Path, tmp_path: Path, world: str, foresail: CommandLine
) -> None:
    outcome, records = train(
        tiny_checkpoint,
        tmp_path,
        steps=1,
        environment=Environment(name=f"{world}:Again"),
        sampling=Sampling(max_new_tokens=2 * MAX_NEW),
        eval=[HeldOut(source=HELD_OUT, limit=8)],
        eval_every=1,
    )
    found = evaluate(outcome.run, samples=1)
    assert found.figures["greedy"]["value"] == records[0]["val-core/arithmetic/acc/mean@1"]
    lengths = {attempt["length"] for record in found.records for attempt in record["samples"]}
    assert max(lengths) > MAX_NEW / 2  # of two turns
    foresail.run("eval", outcome.run, "--samples", 1, "--output", tmp_path / "eval")
    record = json.loads((tmp_path / "eval" / "records.jsonl").read_text().splitlines()[0])
    assert record == found.records[0]


def test_the_reward_of_an_episode_may_be_the_environments_own(
    tiny_checkpoint: Path, tmp_path: Path, world: str
) -> None:
    outcome, records = train(
        tiny_checkpoint,
        tmp_path,
        steps=1,
        environment=Environment(name=f"{world}:Rewards"),
        sampling=Sampling(max_new_tokens=2 * MAX_NEW),
        reward=Reward(grader="environment", threshold=0.5),
        eval=[HeldOut(source=HELD_OUT, limit=8)],
        eval_every=1,
    )
    rows = RunDirectory(outcome.run).read_rollouts(1)
    paid = set()
    for row in rows:
        turns = [turn["response"] for turn in row.get("turns", [])] or [row["response"]]
        done = turns if row["finish"] == "stop" else turns[:1]  # what is cut off reaches no environment
        sevens = sum("7" in turn for turn in done)
        if row["finish"] == "stop":
            assert row["reward"] == 0.5 * sevens and row["status"] == ("correct" if sevens else "wrong")
            paid.add(row["reward"])
    assert len(paid) > 1
    found = evaluate(outcome.run, samples=1)
    assert found.figures["greedy"]["value"] == records[0]["val-core/arithmetic/acc/mean@1"]


@pytest.mark.parametrize("settings", [None, {"tools": ("calculator",)}, {"name": "multi-hop"}])
def test_an_environment_without_rewards_grades_nothing(
    tiny_checkpoint: Path, tmp_path: Path, settings
) -> None:
    environment = None if settings is None else Environment(**settings)
    for reward in (
        Reward(grader="environment"),
        Reward(terms=(Term(grader="environment", name="world"),)),
    ):
        with pytest.raises(ValueError, match='the grader "environment" adds up'):
            rl_recipe(tiny_checkpoint, tmp_path, environment=environment, reward=reward)


def test_one_turn_without_a_world_is_as_before(tiny_checkpoint: Path, tmp_path: Path, world: str) -> None:
    """A world that ends every episode after the first turn changes nothing that is learned."""
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", steps=2)
    ended, _ = train(
        tiny_checkpoint, tmp_path / "ended", steps=2, environment=Environment(name=f"{world}:Ends")
    )
    assert weights(plain.checkpoint).equal(weights(ended.checkpoint))


@pytest.mark.parametrize("call_format", ["tags", "hermes"])
def test_tools_that_are_never_called_change_nothing(
    tiny_checkpoint: Path, tmp_path: Path, call_format
) -> None:
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", steps=1)
    tools = Environment(tools=("calculator",), format=call_format, instructions=False)
    armed, records = train(tiny_checkpoint, tmp_path / "armed", steps=1, environment=tools)
    assert weights(plain.checkpoint).equal(weights(armed.checkpoint))
    assert records[0]["agent/turns/mean"] == 1 and records[0]["agent/tool_calls/mean"] == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "names neither tools nor an environment"),
        ({"name": "multi-hop", "tools": ("python",)}, "remove environment.tools"),
        ({"name": "maze"}, "is none of multi-hop"),
        ({"name": "verifiers:gsm8k"}, "environments of verifiers have a loop of their own"),
        ({"tools": ("hammer",)}, "is none of calculator, python, search"),
        ({"tools": ("search",)}, "environment.corpus is for the tool search; set it"),
        ({"tools": ("python",), "corpus": "a.jsonl"}, 'add "search"'),
        ({"tools": ("a.py:f", "b.py:f")}, "two tools of one name"),
    ],
)
def test_mistakes_of_the_table_are_told(tiny_checkpoint: Path, tmp_path: Path, settings, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        rl_recipe(tiny_checkpoint, tmp_path, environment=Environment(**settings))


def test_a_broken_world_stops_a_run_with_its_words(tiny_checkpoint: Path, tmp_path: Path, world: str) -> None:
    with pytest.raises(Exception, match=r"every verdict of the step failed.*the corpus is gone"):
        train(tiny_checkpoint, tmp_path, environment=Environment(name=f"{world}:Broken"))
