"""Tries the judge of a reward on a right and a wrong answer to one problem.

A server that is away is a warning: it may be started later. One that answers, but gives no verdict, is an error. A
checkpoint is looked for, and not loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.chat.endpoint import EndpointBroken
from foresail.check.finding import Finding, note, refusal, warning
from foresail.recipe.tables.reward import JUDGE, Reward
from foresail.records import FAILURES, Problem, RunStopped, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.grading import NOTHING_YET, group_verdicts
from foresail.rewards.judging.rubric import load_rubric
from foresail.rollout.answering.answerer import check_answerer, open_answerer

NO_ANSWER = "I do not know."
TRIED_SECONDS = 0.0  # that a server is waited for


def look_at_judge(key: str, problems: Sequence[Problem], settings: Reward) -> Iterator[Finding]:
    assert settings.judge is not None
    table = settings.judge
    try:
        load_rubric(table.rubric)
        check_answerer(table.answerer)
    except (OSError, ValueError) as error:
        yield refusal(f"{key}: reward.judge: {error}")
        return
    if table.answerer.checkpoint is not None:
        yield note(
            f"{key}: {table.answerer.checkpoint} judges; it is not loaded here, so no answer was tried"
        )
        return
    problem = next((one for one in problems if one.answer.strip()), problems[0])
    try:
        right, wrong = try_judge(settings, problem)
    except (EndpointBroken, RunStopped) as error:
        yield warning(f"{key}: {error}")
        return
    except (OSError, ValueError) as error:
        yield refusal(f"{key}: {error}")
        return
    for said, verdict in (("right", right), ("wrong", wrong)):
        if verdict.status in FAILURES:
            yield refusal(f"{key}: of a {said} answer to {problem.id} {verdict.detail}")
            return
    if problem.answer.strip() and right.score <= wrong.score:
        yield warning(
            f"{key}: the judge gives the right answer to {problem.id} {right.score:.3g}, and {NO_ANSWER!r} "
            f"{wrong.score:.3g}; try another rubric or model"
        )
    else:
        yield note(
            f"{key}: the judge gives a right answer {right.score:.3g}, and {NO_ANSWER!r} {wrong.score:.3g}"
        )


def try_judge(settings: Reward, problem: Problem) -> tuple[Verdict, Verdict]:
    """Of the problem's own answer, and of none, as a group of two."""
    assert settings.judge is not None
    answerer = settings.judge.answerer.model_copy(update={"patience": TRIED_SECONDS})
    judge = settings.judge.model_copy(update={"answerer": answerer})
    alone = Reward(grader=JUDGE, judge=judge)
    pairs = [(problem, single_turn(text)) for text in (problem.answer.strip() or "Yes.", NO_ANSWER)]
    with open_grading(alone, open_answer=open_answerer) as grading:
        if grading.traits.group:
            futures = group_verdicts(grading, pairs, [NOTHING_YET, NOTHING_YET])
        else:
            futures = [grading.submit(*pair) for pair in pairs]
        right, wrong = (future.result() for future in futures)
    return right, wrong
