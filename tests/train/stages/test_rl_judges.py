"""Reinforcement with a judge: its verdicts are the rewards, and what is no verdict drops its group."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from pathlib import Path

import pytest
import torch
from answering_server import AnsweringServer
from small_runs import train, weights
from tiny_world import rl_recipe

from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.judge import JudgeReward
from foresail.recipe.tables.parts import Checkpoints
from foresail.recipe.tables.reward import Reward, Term
from foresail.records import JudgeAway
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl


def level_of(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0] % 11


def text_of(question: str, name: str) -> str:
    (text,) = re.findall(rf"<<{name} (?:\w+)>>\n(.*?)\n<</{name}", question, re.DOTALL)
    return str(text)


def is_unknown(question: str) -> bool:
    """Whether this judge knows nothing of the problem: it rates no response to it."""
    return level_of(text_of(question, "from user")) < 4


def rate(question: str, count: int) -> str:
    (name,) = re.findall(r'"(quality_[0-9a-f]{6})"', question)
    return "hm" if is_unknown(question) else json.dumps({name: level_of(text_of(question, "answer"))})


def test_a_judge_pays_its_levels_and_drops_groups_without_a_verdict(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    with AnsweringServer(rate) as server:
        judge = JudgeReward(answerer=Answerer(endpoint=server.url, model="m", patience=0.0))
        terms = (Term(grader="judge", weight=0.5, name="taste"),)
        reward = Reward(judge=judge, terms=terms)
        outcome, (record,) = train(tiny_checkpoint, tmp_path, steps=1, reward=reward)
    rows = [*RunDirectory(outcome.run).read_rollouts(record["step"])]
    paid = [row for row in rows if "terms" in row]
    assert paid and all(10 * row["terms"]["taste"] in {*map(float, range(11))} for row in paid)
    right = [float(row["status"] == "correct") + 0.5 * row["terms"]["taste"] for row in paid]
    assert [row["reward"] for row in paid] == pytest.approx(right)
    assert len(server.asked) == len(server.requests)  # equal responses are asked about once
    unknown = any(map(is_unknown, server.asked))
    assert (record["rollout/verdicts_failed"] > 0) == (record["rollout/groups_failed"] > 0) == unknown


def test_a_run_whose_judge_goes_away_saves_what_it_learned_and_goes_on(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    is_up = threading.Event()

    def fading(question: str, count: int) -> str | int:
        learned = (tmp_path / "rl/metrics.jsonl").exists() and RunDirectory(tmp_path / "rl").read_metrics()[
            1:
        ]
        return 503 if learned and not is_up.is_set() else rate(question, count)

    with AnsweringServer(fading) as server:
        judge = JudgeReward(answerer=Answerer(endpoint=server.url, model="m", patience=0.0))
        settings = {
            "steps": 3,
            "reward": Reward(grader="judge", judge=judge),
            "checkpoints": Checkpoints(every=100),
        }
        with pytest.raises(JudgeAway, match=r"the judge of .reward.judge. is away"):
            train(tiny_checkpoint, tmp_path, **settings)
        assert (tmp_path / "rl/checkpoints/step_1").is_dir()
        is_up.set()
        resumed = run_rl(rl_recipe(tiny_checkpoint, tmp_path, **settings), resume=True)
        whole, _ = train(tiny_checkpoint, tmp_path / "whole", **settings)
    assert torch.equal(weights(resumed.checkpoint), weights(whole.checkpoint))
