"""Reinforcement with a judge: its verdicts are the rewards, and what is no verdict drops its group."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from answering_server import AnsweringServer
from small_runs import train

from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.judge import JudgeReward
from foresail.recipe.tables.reward import Reward, Term
from foresail.runlog.directory import RunDirectory


def level_of(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0] % 12  # 11 is none of the rubric's levels


def text_of(question: str) -> str:
    (text,) = re.findall(r"<<answer (?:\w+)>>\n(.*?)\n<</answer", question, re.DOTALL)
    return str(text)


def rate(question: str, count: int) -> str:
    (name,) = re.findall(r'"(quality_[0-9a-f]{6})"', question)
    return json.dumps({name: level_of(text_of(question))})


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
    refused = sum(level_of(text_of(question)) == 11 for question in server.asked)
    assert (record["rollout/verdicts_failed"] > 0) == (refused > 0)
    assert (record["rollout/groups_failed"] > 0) == (refused > 0)
