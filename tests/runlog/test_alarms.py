"""Alarms: every trouble raises its own and no other, a healthy run none, and each is raised once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from histories import healthy, since

from foresail.recipe.keys import known_keys
from foresail.recipe.stages.rl import Rl
from foresail.runlog.alarm_monitor import QUIET, AlarmMonitor
from foresail.runlog.alarms import CHECKS

RECORDED = Path(__file__).parent / "quickstart_metrics.jsonl"
NOTHING_RIGHT = {"groups/useful": 0.05, "groups/solved": 0.01, "groups/unsolved": 0.94}
# what goes wrong from step 21 on -> the alarm
TROUBLES: dict[str, dict[str, Any]] = {
    "entropy collapse": {"actor/entropy": 0.02, "rollout/accuracy": 0.55, "rollout/reward": 0.55},
    "length explosion": {
        "response_length/mean": lambda step: 300 * 1.1 ** (step - 20),
        "rollout/accuracy": 0.55,
        "rollout/reward": 0.55,
    },
    "length collapse": {"response_length/mean": 60.0, "rollout/accuracy": 0.2, "rollout/reward": 0.2},
    "reward without accuracy": {
        "rollout/accuracy": 0.55,
        "rollout/reward": lambda step: 0.55 + 0.02 * (step - 20),
    },
    "groups too easy": {"groups/useful": 0.02, "groups/solved": 0.97, "groups/unsolved": 0.01},
    "groups too hard": NOTHING_RIGHT,
    "mismatch rising": {"rollout/logprob_kl": lambda step: 2e-4 * 1.3 ** (step - 20)},
    "gradient spikes": {"actor/grad_norm": lambda step: 30.0 if step % 3 == 0 else 0.4},
    "clip fraction": {"actor/pg_clipfrac": 0.4},
    "truncated responses": {"response_length/clip_ratio": 0.45},
    "failed verdicts": {"verdict/crashed": 0.2, "verdict/first_failure": "crashed: KeyError: 'x'"},
    "dead experts": {"router/dead_experts": 2},
    "uneven experts": {"router/load_max_over_mean": 4.5},
}


def raised(records: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(found.alarm.name, found.step) for found in AlarmMonitor(records).raised]


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_run_raises_none(seed: int) -> None:
    assert raised(healthy(300, seed=seed)) == []


def test_the_quickstart_raises_none() -> None:
    """30 real steps from 40 % to 98 %: lengths triple, entropy falls to a twentieth, most groups end up solved."""
    records = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    assert records[-1]["rollout/accuracy"] > 0.95 and len(records) == 31
    assert raised(records) == []
    assert records[-1].keys() >= {
        "groups/useful",
        "rollout/reward",
        "rollout/logprob_kl",
        "actor/pg_clipfrac",
    }


def test_there_is_a_trouble_for_every_check() -> None:
    assert len(TROUBLES) == len(CHECKS)


@pytest.mark.parametrize("name", TROUBLES)
def test_a_trouble_raises_its_own_alarm_once(name: str) -> None:
    ((found, step),) = raised(since(21, TROUBLES[name]))
    assert found == name and 21 <= step <= 40


@pytest.mark.parametrize("name", TROUBLES)
def test_alarms_say_numbers_and_name_keys_that_exist(name: str) -> None:
    ((found),) = AlarmMonitor(since(21, TROUBLES[name])).raised
    assert re.search(r"\d", found.alarm.text)
    known = {key for key, _ in known_keys(Rl)}
    named = re.findall(r"\b[a-z_]+\.[a-z_]+\b|\b[a-z]+_[a-z_]+\b", found.alarm.advice)
    assert set(named) <= known, f"{set(named) - known} are no keys of a recipe"


def test_the_first_failure_is_told() -> None:
    (found,) = AlarmMonitor(since(21, TROUBLES["failed verdicts"])).raised
    assert str(found.alarm).startswith(
        "failed verdicts: 21% of the verdicts failed (timeout 1%, crashed 20%); crashed: KeyError: 'x'. Their"
    )


def test_growing_certain_while_getting_right_is_no_collapse() -> None:
    """Entropy a tenth of what it was, errors too."""
    records = healthy()
    for record in records[20:]:
        record |= {"rollout/accuracy": 0.93, "actor/entropy": 0.04}
    assert raised(records) == []


def test_shorter_and_as_good_is_no_collapse() -> None:
    records = healthy()
    for record in records[20:]:
        record["response_length/mean"] = 80.0
    assert raised(records) == []


def test_an_alarm_is_raised_again_only_after_it_was_over() -> None:
    def cut(steps: set[int]) -> list[dict[str, Any]]:
        shares = {"verdict/crashed": lambda step: 0.5 if step in steps else 0.0}
        return since(1, shares)

    name = "failed verdicts"
    assert raised(cut({10, 12, 14})) == [(name, 10)]  # flickering is one alarm
    assert raised(cut({10, 10 + QUIET})) == [(name, 10)]
    assert raised(cut({10, 10 + QUIET + 1})) == [(name, 10), (name, 10 + QUIET + 1)]


def test_a_resumed_run_goes_on_watching_where_it_was() -> None:
    records = since(21, NOTHING_RIGHT)
    whole = AlarmMonitor(records)
    for cut in range(len(records)):
        monitor = AlarmMonitor(records[:cut])
        later = [found for record in records[cut:] for found in monitor.check(record)]
        assert later == [found for found in whole.raised if found.step > cut]
        assert monitor.standing == whole.standing


def test_a_new_stage_of_the_curriculum_is_a_new_beginning() -> None:
    """Harder problems: three times the length, half of the accuracy, and nothing is wrong."""
    records = healthy()
    harder = {"response_length/mean": 1200.0, "rollout/accuracy": 0.25, "rollout/reward": 0.25}
    assert raised(records[:20] + [record | harder for record in records[20:]]) != []
    told = [record | {"curriculum/stage": 1} for record in records[:20]]
    assert raised(told + [record | harder | {"curriculum/stage": 2} for record in records[20:]]) == []


def test_metrics_that_are_missing_or_null_raise_nothing() -> None:
    assert raised([{"step": step, "train/loss": 1.0} for step in range(1, 30)]) == []
    nulls = [dict.fromkeys(record, None) | {"step": record["step"]} for record in healthy()]
    assert raised(nulls) == []


def test_step_0_is_no_part_of_the_history() -> None:
    assert raised([{"step": 0, "verdict/crashed": 1.0}]) == []
