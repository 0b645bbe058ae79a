"""Grading by a judge, in a thread beside the rollout: all waiting responses are asked about together.

    grading = JudgeGrading(settings, None, open_answer=open_answerer)     # the judge's score is the reward
    grading = JudgeGrading(settings, rules, open_answer=open_answerer)    # a term beside rules, or the other way

Scores lie between 0 and 1: the level on the rubric's scale, or how often the response was better than the problem's
answer or its siblings. A judge that refuses, or says something else than a verdict, gives a failure and no score. A
server that stays away stops the run, which can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from foresail.chat.answering import Answer
from foresail.chat.endpoint import EndpointBroken
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.judge import JudgeReward
from foresail.recipe.tables.reward import JUDGE, Reward
from foresail.records import JudgeAway, Verdict, final_text
from foresail.rewards.grading import Grading, Pair, crashed, failure
from foresail.rewards.judging import judge as judging
from foresail.rewards.judging.judge import Comparison, Judge, Rating, Unjudged
from foresail.rewards.judging.question import Judged
from foresail.rewards.judging.remembered import Remembered
from foresail.rewards.judging.rubric import Rubric, load_rubric
from foresail.rewards.judging.shorter import AGAINST_REFERENCE, compare_responses, rate_responses
from foresail.rewards.judging.siblings import ALONE, compare_siblings
from foresail.rewards.queued_grading import GradingJob
from foresail.rewards.side_grading import SideGrading

OpenAnswer = Callable[[Answerer], Answer]
UNPARSABLE = Verdict(
    status="unparsable", score=0.0, detail="the thinking has no end, so there is no answer to judge"
)


class JudgeGrading(SideGrading):
    def __init__(self, settings: Reward, others: Grading | None, *, open_answer: OpenAnswer) -> None:
        assert settings.judge is not None, "the recipe's check asks for [reward.judge]"
        super().__init__(settings, others, grader=JUDGE, needs_group=settings.judge.against == "siblings")
        self.table: JudgeReward = settings.judge
        self.open_answer = open_answer
        self._asked: Remembered | None = None
        self._rubric: Rubric | None = None

    def open(self) -> None:
        try:
            self._rubric = load_rubric(self.table.rubric)
            if self._rubric.classes:
                raise ValueError(
                    f"rubric {self._rubric.name} has classes, which are no scores; use one with levels"
                )
            self._asked = Remembered(self.open_answer(self.table.answerer))
        except (OSError, ValueError) as error:
            raise ValueError(f"reward.judge: {error}") from error

    @property
    def rubric(self) -> Rubric:
        assert self._rubric is not None, "it is open between `check` and `close`"
        return self._rubric

    @property
    def judge(self) -> Judge:
        assert self._asked is not None, "it is open between `check` and `close`"
        return Judge(self.table.form, self._asked)

    def close(self) -> None:
        if self._asked is not None:
            self._asked.stop()
        super().close()

    def shut(self) -> None:
        self._asked = None  # frees a checkpoint's memory

    def grade(self, jobs: Sequence[GradingJob]) -> None:
        """All together; if that fails one by one, so that one response does not fail the others."""
        try:
            verdicts = self.verdicts([job.pairs for job in jobs])
        except EndpointBroken as error:
            raise JudgeAway(f"the judge of [reward.judge] is away: {error}") from error
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    self.grade([job])
                return
            broken, trace = crashed(error)
            self.log_first_failure(trace)
            jobs[0].settle(broken)
            return
        for job, own in zip(jobs, verdicts, strict=True):
            job.settle(own)

    def verdicts(self, groups: Sequence[Sequence[Pair]]) -> list[list[Verdict]]:
        if self.needs_group:
            return self.by_siblings(groups)
        return [[verdict] for verdict in self.one_by_one([pair for (pair,) in groups])]

    def one_by_one(self, pairs: Sequence[Pair]) -> list[Verdict]:
        verdicts: dict[int, Verdict] = {}
        asked: dict[int, Judged] = {}
        for number, (problem, trajectory) in enumerate(pairs):
            response = final_text(trajectory.response)
            if response is None:
                verdicts[number] = UNPARSABLE
            elif self.needs_answer and not problem.answer.strip():
                verdicts[number] = Verdict(status="ungradable", score=0.0, detail="the problem has no answer")
            else:
                reference = problem.answer if self.needs_answer else None
                asked[number] = Judged(prompt=problem.prompt, response=response, reference=reference)
        if self.table.against == "reference":
            pairs_asked = [*map(against_reference, asked.values())]
            compared = compare_responses(self.judge, pairs_asked, self.rubric, AGAINST_REFERENCE)
            verdicts |= dict(zip(asked, map(self.of_comparison, compared), strict=True))
        else:
            rated = rate_responses(self.judge, [*asked.values()], self.rubric)
            verdicts |= dict(zip(asked, map(self.of_rating, rated), strict=True))
        return [verdicts[number] for number in range(len(pairs))]

    @property
    def needs_answer(self) -> bool:
        return self.table.against == "reference" or self.table.shows_answer

    def by_siblings(self, groups: Sequence[Sequence[Pair]]) -> list[list[Verdict]]:
        texts = [[final_text(trajectory.response) for _, trajectory in group] for group in groups]
        prompts = [group[0][0].prompt for group in groups]
        scored = compare_siblings(self.judge, self.rubric, prompts, texts, self.table.opponents)
        return [
            [self.of_sibling(*both) for both in zip(own, scores, strict=True)]
            for own, scores in zip(texts, scored, strict=True)
        ]

    # Verdicts.

    def of_sibling(self, text: str | None, score: float | Unjudged) -> Verdict:
        if text is None:
            return UNPARSABLE
        if isinstance(score, Unjudged):
            return no_verdict(score)
        return self.scored(score, f"better than {score:.0%} of the siblings that it was compared with")

    def of_rating(self, rating: Rating | Unjudged) -> Verdict:
        if isinstance(rating, Unjudged):
            return no_verdict(rating)
        name = self.rubric.name
        detail = f"{name} is {rating.labels[name]} of {self.rubric.low} to {self.rubric.high}"
        return with_shown(self.scored(rating.score, detail), rating.shown)

    def of_comparison(self, compared: Comparison | Unjudged) -> Verdict:
        if isinstance(compared, Unjudged):
            return no_verdict(compared)
        words = {"first": "better than", "second": "worse than", "tie": "as good as"}
        said = words.get(compared.outcome)
        detail = f"{said} the problem's answer" if said else "the judge says otherwise when both are swapped"
        inconsistent = float(compared.outcome == "inconsistent")
        return with_shown(
            self.scored(compared.score, detail), compared.shown, {"judge/inconsistent": inconsistent}
        )

    def scored(self, score: float, detail: str) -> Verdict:
        right_from = self.table.right_from
        if right_from is None:
            return Verdict(status="scored", score=score, detail=f"judged {score:.3g}: {detail}")
        status = "correct" if score >= right_from else "wrong"
        return Verdict(status=status, score=score, detail=f"judged {score:.3g}: {detail}")  # type: ignore[arg-type]


def with_shown(verdict: Verdict, shown: float, metrics: Mapping[str, float] | None = None) -> Verdict:
    """A response that had to be cut is told in the detail, and counted."""
    detail = verdict.detail if shown == 1 else f"{verdict.detail}; the judge could be shown {shown:.0%} of it"
    return replace(
        verdict, detail=detail, metrics={**(metrics or {}), "judge/shown_shorter": float(shown < 1)}
    )


def against_reference(judged: Judged) -> judging.Pair:
    assert judged.reference is not None
    return judging.Pair(prompt=judged.prompt, first=judged.response, second=judged.reference)


def no_verdict(unjudged: Unjudged) -> Verdict:
    detail = f"the judge gave no verdict: {unjudged.reason}"
    if unjudged.detail:
        detail += f" ({unjudged.detail})"
    if unjudged.reason in ("refused", ALONE):
        return Verdict(status="ungradable", score=0.0, detail=detail)
    return failure(detail)
