r"""Tries the reward: three gold answers of a source must be right, and three wrong ones must not be.

The grader gets what a model might write: `\boxed{42}`, the answer alone, a problem's program. A user's function may
expect another form, or reward something else than right answers: only its failures are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from foresail.check.finding import Finding, note, refusal, warning
from foresail.check.judging import look_at_judge
from foresail.data.problems.qa import accepted_answers
from foresail.data.problems.solutions import gold_programs
from foresail.maths.gold.trials import boxed
from foresail.recipe.reward_function import can_travel, name_of
from foresail.recipe.tables.reward import ENVIRONMENT, GRADERS, JUDGE, NO_GRADER, Reward
from foresail.records import Problem, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.columns import check_problem
from foresail.rewards.grading import NOTHING_YET, Grading, group_verdicts
from foresail.rewards.tally import one_line
from foresail.tokenizer.tokenizer import Tokenizer

NUM_PROBLEMS = 3
BROKEN = ("crashed", "timeout")

Forms = Callable[[Problem], list[str]]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A problem's right answers, in every form worth a try, and wrong ones, with their verdicts."""

    problem: Problem
    gold: list[Verdict]
    wrong: list[Verdict]


def program_forms(problem: Problem) -> list[str]:
    """The programs that come with a problem, fenced."""
    prompt = problem.prompt[-1].content if problem.prompt else ""
    programs = gold_programs(problem.extra, prompt)
    return [text if "```" in text else f"```python\n{text}\n```" for text in programs]


def any_form(problem: Problem) -> list[str]:
    """For a user's functions: the usual forms of an answer."""
    answer = problem.answer
    stated = [
        boxed(answer),
        answer,
        f"#### {answer}",
        f"<answer>{answer}</answer>",
        f"The answer is {answer}.",
    ]
    return [*stated, *program_forms(problem)]


# Right answers by grader, in every form worth a try, and an answer that is always wrong.
GOLD: dict[str, Forms] = {
    "math": lambda problem: [boxed(problem.answer)],
    "exact": lambda problem: [problem.answer],
    "qa": lambda problem: [f"<answer>{answer}</answer>" for answer in accepted_answers(problem)],
    "code": program_forms,
    "structured": lambda problem: [problem.answer, f"Answer: {problem.answer}"],
}
WRONG: dict[str, Callable[[Problem], str]] = {
    "math": lambda problem: boxed(f"{problem.answer}7"),
    "exact": lambda problem: f"{problem.answer}7",
    "qa": lambda problem: f"<answer>{problem.answer} 7</answer>",
    "code": lambda problem: "```python\nraise ValueError\n```",
    "structured": lambda problem: "Answer: none of these 7",
}


def look_at_grading(
    key: str, problems: Sequence[Problem], settings: Reward, tokenizer: Tokenizer | None
) -> Iterator[Finding]:
    if settings.grader == ENVIRONMENT:
        yield note(f"{key}: rewards are the environment's own, so no answer was graded")
        return
    if settings.is_empty:
        yield note(f"{key}: nobody grades, so no answer was tried")
        return
    if settings.asks_judge:
        yield from look_at_judge(key, problems, settings)
        if (others := settings.without(JUDGE)) is None:
            return
        settings = others
    if settings.asks_model:
        yield note(f"{key}: answers are scored by a reward model, so none was graded here")
        return
    some = spread(problems)
    one_process = settings.workers or (1 if settings.workers is None else 0)
    stays = settings.grader in ("math", "exact", "qa", "structured") or not all(
        map(can_travel, settings.functions.values())
    )
    try:
        grading = open_grading(settings if stays else settings.model_copy(update={"workers": one_process}))
    except (OSError, ValueError, ImportError) as error:
        yield refusal(f"{key}: {error}")
        return
    name = name_of(settings.grader)
    if settings.grader == NO_GRADER:
        name = " + ".join(map(name_of, settings.functions.values())) or NO_GRADER
    gold_of, wrong_of = GOLD.get(name, any_form), WRONG.get(name, WRONG["math"])
    with grading:
        try:
            check_problem(grading.traits.required_columns, some[0], f"{key}.source")
        except ValueError as error:
            yield refusal(str(error))
            return
        if settings.grader not in GRADERS:
            some = [with_prompt_ids(problem, tokenizer) for problem in some]
            broken = first_failure(grading, some, gold_of, wrong_of, tokenizer)
            if broken is not None:
                yield refusal(f"{key}: {name} fails on {broken}")
                return
        trials = [
            Trial(
                problem=problem,
                gold=grade_all(grading, problem, gold_of(problem), tokenizer),
                wrong=grade_all(grading, problem, ["I do not know.", wrong_of(problem)], tokenizer),
            )
            for problem in some
        ]
    judge = built_in_findings if settings.grader in GRADERS else own_findings
    yield from judge(key, name, trials)


def refuse_broken(
    grading: Grading, problems: Sequence[Problem], settings: Reward, tokenizer: Tokenizer
) -> None:
    """Before an evaluation: raise if a user's function fails on made-up answers."""
    if not settings.functions or settings.asks_model or settings.asks_environment:
        return
    some = [with_prompt_ids(problem, tokenizer) for problem in spread(problems)]
    broken = first_failure(grading, some, any_form, WRONG["math"], tokenizer)
    if broken is not None:
        raise ValueError(f"{' + '.join(map(name_of, settings.functions.values()))} fails on {broken}")


def first_failure(
    grading: Grading,
    problems: Sequence[Problem],
    gold_of: Forms,
    wrong_of: Callable[[Problem], str],
    tokenizer: Tokenizer | None,
) -> str | None:
    """Grade a right and a wrong answer to each problem, as a group of two for functions of groups.

    One problem at a time, so that a function that hangs costs its time limit once.
    """
    for problem in problems:
        responses = [gold_of(problem)[0], wrong_of(problem)]
        for response, verdict in zip(
            responses, grade_all(grading, problem, responses, tokenizer), strict=True
        ):
            if verdict.status in BROKEN:
                reason = f"{verdict.status}: {one_line(verdict.detail)[:300]}"
                return f"the answer {response!r} to {problem.id}: {reason}"
    return None


def spread(problems: Sequence[Problem]) -> list[Problem]:
    """The first, one in the middle, the last."""
    places = sorted({0, len(problems) // 2, len(problems) - 1})
    return [problems[place] for place in places[:NUM_PROBLEMS]]


def grade_all(
    grading: Grading, problem: Problem, responses: Sequence[str], tokenizer: Tokenizer | None
) -> list[Verdict]:
    pairs = [
        (with_response_ids(problem, response, tokenizer), single_turn(response)) for response in responses
    ]
    if not grading.traits.group:
        return [future.result() for future in [grading.submit(*pair) for pair in pairs]]
    early = [grading.submit_early(*pair) if grading.traits.early else NOTHING_YET for pair in pairs]
    return [future.result() for future in group_verdicts(grading, pairs, early)]


def with_prompt_ids(problem: Problem, tokenizer: Tokenizer | None) -> Problem:
    """A user's functions get token ids, as in a run."""
    ids = [0] if tokenizer is None else tokenizer.encode_prompt(problem.prompt)
    return replace(problem, extra={**problem.extra, "prompt_ids": ids})


def with_response_ids(problem: Problem, response: str, tokenizer: Tokenizer | None) -> Problem:
    if "prompt_ids" not in problem.extra:
        return problem
    try:
        ids = [0] if tokenizer is None else [*tokenizer.encode(response), tokenizer.eos_ids[0]]
    except ValueError:  # made-up words that a small tokenizer cannot write
        ids = [0]
    return replace(problem, extra={**problem.extra, "completion_ids": ids})


def built_in_findings(key: str, grader: str, trials: Sequence[Trial]) -> Iterator[Finding]:
    tried = [trial for trial in trials if trial.gold]
    failed = [trial for trial in tried if not any(map(is_right, trial.gold))]
    ungradable = first_wrong(trials, lambda verdict: verdict.status in (*BROKEN, "ungradable"))
    right = first_wrong(trials, is_right)
    if failed:
        summary = f"{len(failed)} of {len(tried)} gold answers are not right to the grader {grader}"
        advice = (
            "correct the answers, or set another grader; `foresail data check-answers` looks at all of them"
        )
        yield (refusal if len(failed) == len(tried) else warning)(
            f"{key}: {summary}: {describe_verdict(failed[0].problem, failed[0].gold[0])}; {advice}"
        )
    elif ungradable:
        yield (refusal if len(ungradable) == len(trials) else warning)(
            f"{key}: a problem cannot be graded: {describe_verdict(*ungradable[0])}"
        )
    if right:
        yield (refusal if len(right) == len(trials) else warning)(
            f"{key}: the grader {grader} calls a wrong answer right: {describe_verdict(*right[0])}; correct the "
            "problem, or set another grader"
        )
    if not failed and not ungradable and not right:
        yield note(f"{key}: {len(tried)} gold answers right, {len(trials)} wrong ones not ({grader})")


def first_wrong(
    trials: Sequence[Trial], is_meant: Callable[[Verdict], bool]
) -> list[tuple[Problem, Verdict]]:
    """For each problem the first wrong answer whose verdict is meant, if there is one."""
    first_by_problem = [(trial.problem, next(filter(is_meant, trial.wrong), None)) for trial in trials]
    return [(problem, verdict) for problem, verdict in first_by_problem if verdict is not None]


def describe_verdict(problem: Problem, verdict: Verdict) -> str:
    """describe_verdict(…) -> "'x = 4' of train:17 is unparsable (no number)"."""
    answer, detail = one_line(problem.answer)[:60], one_line(verdict.detail)[:160]
    return f"{answer!r} of {problem.id} is {verdict.status} ({detail})"


def total(verdict: Verdict) -> float:
    return verdict.score + sum(verdict.terms.values())


def own_findings(key: str, grader: str, trials: Sequence[Trial]) -> Iterator[Finding]:
    gold = [verdict for trial in trials for verdict in trial.gold]
    wrong = [verdict for trial in trials for verdict in trial.wrong]
    every = [*gold, *wrong]
    if broken := [verdict for verdict in every if verdict.status in BROKEN]:
        yield refusal(
            f"{key}: {grader} failed on {len(broken)} of {len(every)} answers made up for it; the first: "
            f"{broken[0].status}: {one_line(broken[0].detail)[:300]}"
        )
        return
    best, worst = (max(map(total, verdicts), default=0.0) for verdicts in (gold, wrong))
    if all(verdict.status == "ungradable" for verdict in every):
        yield warning(
            f"{key}: {grader} gave None to every answer made up for it: nothing would be learned from"
        )
    elif any(verdict.status == "scored" for verdict in every):
        yield note(f"{key}: {grader} gives scores up to {max(best, worst):g}, and nothing is right or wrong")
    elif best <= worst:
        yield warning(
            f"{key}: {grader} gives right answers no more than wrong ones ({best:g} and {worst:g}), in any of the "
            r"forms \boxed{…}, ####, <answer> and plain; see that it reads what the model will write"
        )
    else:
        yield note(f"{key}: {grader} gives right answers up to {best:g}, wrong ones up to {worst:g}")


def is_right(verdict: Verdict) -> bool:
    return verdict.status == "correct"
