"""Several rewards as one grader: the main one, which judges right or wrong, and terms that are added to it.

    [[reward.terms]]
    grader = "my_rewards.py:brevity"
    weight = 0.2

The verdict holds each score; `group_rewards.reward` weighs them. If a term crashes, the verdict is a failure. A
term that does not apply to a response counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foresail.records import FAILURES, Problem, Trajectory, Verdict
from foresail.rewards.grading import Grader, GraderTraits, Pair, applied, load_grader

Choice = Callable[[Grader], bool]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Functions that want whole groups get them; all others judge each response as soon as it has ended."""

    main: Grader | None
    terms: tuple[tuple[str, Grader], ...]

    def load(self) -> None:
        for grader in self._graders():
            load_grader(grader)

    def traits(self) -> GraderTraits:
        every = [load_grader(grader) for grader in self._graders()]
        return GraderTraits(
            early=any(traits.early for traits in every),
            group=any(traits.group for traits in every),
            main_in_group=self.main is not None and wants_group(self.main),
            required_columns=tuple(required for traits in every for required in traits.required_columns),
        )

    def __call__(self, problem: Problem, trajectory: Trajectory) -> Verdict:
        (verdict,) = self._judge([(problem, trajectory)], lambda _: True)
        return applied(verdict)

    def grade_early(self, problem: Problem, trajectory: Trajectory) -> Verdict:
        (verdict,) = self._judge([(problem, trajectory)], lambda grader: not wants_group(grader))
        return verdict

    def grade_group(self, pairs: Sequence[Pair]) -> list[Verdict]:
        return self._judge(pairs, wants_group)

    def _graders(self) -> list[Grader]:
        return [*([] if self.main is None else [self.main]), *(grader for _, grader in self.terms)]

    def _judge(self, pairs: Sequence[Pair], chosen: Choice) -> list[Verdict]:
        verdicts = [Verdict(status="scored", score=0.0)] * len(pairs)
        if self.main is not None and chosen(self.main):
            verdicts = grade_all(self.main, pairs)
        for name, grader in self.terms:
            if chosen(grader):
                scored = grade_all(grader, pairs)
                verdicts = [add_term(name, *both) for both in zip(verdicts, scored, strict=True)]
        return verdicts


def add_term(name: str, verdict: Verdict, scored: Verdict) -> Verdict:
    """The verdict with a term's score; a failure of either is a failure."""
    if verdict.status in FAILURES:
        return verdict
    if scored.status in FAILURES - {"ungradable"}:
        return replace(scored, detail=f"term {name}: {scored.detail}")
    applies = scored.status != "ungradable"
    return replace(
        verdict,
        terms={**verdict.terms, name: scored.score} if applies else verdict.terms,
        extra={**scored.extra, **verdict.extra},
        metrics={**scored.metrics, **verdict.metrics},
    )


def wants_group(grader: Grader) -> bool:
    return bool(getattr(grader, "batched", False))


def grade_all(grader: Grader, pairs: Sequence[Pair]) -> list[Verdict]:
    together = getattr(grader, "grade_group", None)
    return [grader(*pair) for pair in pairs] if together is None else together(pairs)
