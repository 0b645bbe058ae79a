"""The records of an evaluation, problem by problem, and the figures made from them.

A failure (timeout, crash, ungradable) says nothing about the model: it is left out of every figure and counted
separately. An unparsable answer counts as wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from foresail.evaluation.interval import confidence_interval, unbounded_interval
from foresail.evaluation.metrics import majority_at_k, pass_at_k
from foresail.records import FAILURES, Status
from foresail.runlog.atomic import write_text


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One judged response. `answer` is what it votes for in maj@k; `length` is in tokens.

    `reward` is kept where a recipe's reward has terms or is a function, without what length and format cost.
    `shares`, from 0 to 1, is what the grader says besides of how near the answer is: F1, say. `thinking` is in
    tokens, where the chat template knows thinking, and `forced` says that the budget closed it.
    """

    status: Status
    answer: str | None
    length: int
    text: str = ""
    reward: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    thinking: int | None = None
    forced: bool = False

    @property
    def failed(self) -> bool:
        """Whether the verdict is neither right nor wrong."""
        return self.status in FAILURES or self.status == "scored"

    @property
    def correct(self) -> bool:
        return self.status == "correct"


@dataclass(frozen=True, kw_only=True)
class ProblemResult:
    """All attempts at one problem: the greedy one, if it was made, and the samples."""

    problem_id: str
    source: str = "unknown"
    greedy: Attempt | None = None
    samples: tuple[Attempt, ...] = ()

    @property
    def judged(self) -> tuple[Attempt, ...]:
        """The samples that are no failures."""
        return tuple(sample for sample in self.samples if not sample.failed)


def to_json(record: Attempt | ProblemResult) -> dict[str, Any]:
    """For json.dumps(…, default=to_json); an attempt without a reward, shares or thinking does not mention them."""
    left_out: dict[str, Any] = {"reward": None, "shares": {}, "thinking": None, "forced": False}
    return {
        name: value for name, value in vars(record).items() if name not in left_out or value != left_out[name]
    }


def summarise(results: Sequence[ProblemResult]) -> dict[str, Any]:
    """The figures of an evaluation with n samples a problem, ready for JSON:

    {"problems": 200, "greedy": figure, "mean@8": figure, "pass@1": …, "pass@8": figure, "maj@8": figure, …}
    where a figure is {"value": 0.61, "low": 0.54, "high": 0.67, "problems": 200}, over the problems that
    have enough judged samples for it. A figure that no problem can give is left out.
    """
    greedy = [result.greedy for result in results if result.greedy is not None]
    samples = [sample for result in results for sample in result.samples]
    scores: dict[str, list[float]] = {}
    if not any(attempt.status == "scored" for attempt in (*greedy, *samples)):
        scores["greedy"] = [float(attempt.correct) for attempt in greedy if not attempt.failed]
        scores |= score_samples(results)
    scores |= score_shares(results)
    rewards = score_rewards(results)
    return {
        "problems": len(results),
        **{name: figure(values) for name, values in scores.items() if values},
        **{name: reward_figure(values) for name, values in rewards.items() if len(values) > 1},
        "greedy_attempts": describe(greedy),
        "samples": describe(samples),
    }


def score_samples(results: Sequence[ProblemResult]) -> dict[str, list[float]]:
    """Per-problem scores by figure: {"mean@2": [0.5, …], "pass@1": …, "pass@2": …, "maj@2": …}.

    Failures make some problems poorer in samples; pass@k takes those that still have k.
    """
    n = max((len(result.samples) for result in results), default=0)
    judged = [result.judged for result in results if result.judged]
    scores = {f"mean@{n}": [fmean(sample.correct for sample in samples) for samples in judged]}
    for k in subset_sizes(n):
        scores[f"pass@{k}"] = [
            pass_at_k(len(samples), sum(sample.correct for sample in samples), k)
            for samples in judged
            if len(samples) >= k
        ]
    scores[f"maj@{n}"] = [
        majority_at_k([sample.answer for sample in samples], [sample.correct for sample in samples])
        for samples in judged
    ]
    return scores


def score_rewards(results: Sequence[ProblemResult]) -> dict[str, list[float]]:
    """Per-problem means of rewards, where they are more than right or wrong: {"greedy reward": [2.0, …]}."""
    n = max((len(result.samples) for result in results), default=0)
    scores_of: dict[str, list[float]] = {}
    for result in results:
        greedy = [] if result.greedy is None else [result.greedy]
        for way, attempts in (("greedy", greedy), (f"mean@{n}", result.samples)):
            if rewards := [attempt.reward for attempt in attempts if attempt.reward is not None]:
                scores_of.setdefault(f"{way} reward", []).append(fmean(rewards))
    return scores_of


def score_shares(results: Sequence[ProblemResult]) -> dict[str, list[float]]:
    """Per-problem means of what graders score besides: {"greedy f1": [0.5, …], "mean@8 f1": …}."""
    n = max((len(result.samples) for result in results), default=0)
    scores_of: dict[str, list[float]] = {}
    for result in results:
        greedy = [] if result.greedy is None or result.greedy.failed else [result.greedy]
        for way, attempts in (("greedy", greedy), (f"mean@{n}", result.judged)):
            for name in dict.fromkeys(name for attempt in attempts for name in attempt.shares):
                scores = [attempt.shares[name] for attempt in attempts if name in attempt.shares]
                scores_of.setdefault(f"{way} {name}", []).append(fmean(scores))
    return scores_of


def figure(scores: Sequence[float]) -> dict[str, float]:
    """A mean over problems with its 95 % interval."""
    low, high = confidence_interval(scores)
    return {"value": fmean(scores), "low": low, "high": high, "problems": len(scores)}


def reward_figure(rewards: Sequence[float]) -> dict[str, float]:
    """As `figure`, for rewards, which may be any numbers; a single problem has no interval and no figure."""
    low, high = unbounded_interval(rewards)
    return {"value": fmean(rewards), "low": low, "high": high, "problems": len(rewards)}


def describe(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """How many there are, how many failed, how each was judged, and the mean length in tokens."""
    return {
        "count": len(attempts),
        "failures": sum(attempt.status in FAILURES for attempt in attempts),
        "statuses": dict(Counter(attempt.status for attempt in attempts)),
        "mean_length": fmean(attempt.length for attempt in attempts) if attempts else None,
        **thought_metrics(attempts),
    }


def thought_metrics(attempts: Sequence[Attempt]) -> dict[str, float]:
    """Thinking tokens on average, and the share whose thinking its budget closed; none where nobody counted."""
    counted = [attempt for attempt in attempts if attempt.thinking is not None]
    if not counted:
        return {}
    return {
        "mean_thinking": fmean(attempt.thinking or 0 for attempt in counted),
        "forced": fmean(attempt.forced for attempt in counted),
    }


def subset_sizes(samples: int) -> list[int]:
    """The k of pass@k, by doubling up to all of them: subset_sizes(6) -> [1, 2, 4, 6]."""
    doubled = [1 << exponent for exponent in range(samples.bit_length())]
    return doubled if samples in (0, *doubled) else [*doubled, samples]


def write_results(folder: Path, results: Sequence[ProblemResult], settings: Mapping[str, Any]) -> None:
    write_text(
        folder / "records.jsonl",
        "".join(json.dumps(result, default=to_json, ensure_ascii=False) + "\n" for result in results),
    )
    summary = {**settings, **summarise(results)}
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def figures_table(results: Sequence[ProblemResult], mode: str = "") -> Table:
    """For the terminal; `mode` names how the problems were asked, such as "thinking on"."""
    figures = summarise(results)
    table = Table(title=f"{figures['problems']} problems" + (f", {mode}" if mode else ""), box=None)
    for column in ("", "figure", "95 % interval", "problems"):
        table.add_column(column, justify="left" if not column else "right")
    for name, figure in figures.items():
        if isinstance(figure, dict) and "value" in figure:
            value, low, high = (
                f"{figure[key]:.3g}" if name.endswith(" reward") else f"{figure[key]:.1%}"
                for key in ("value", "low", "high")
            )
            table.add_row(name, value, f"{low} to {high}", str(figure["problems"]))
    for name in ("greedy_attempts", "samples"):
        if figures[name]["failures"]:
            table.add_row(f"failures in {name}", str(figures[name]["failures"]), "not counted above", "")
        if figures[name].get("mean_thinking") is not None:
            closed = f"{figures[name]['forced']:.1%} closed by the budget"
            table.add_row(f"thinking in {name}", f"{figures[name]['mean_thinking']:.1f} tokens", closed, "")
    return table
