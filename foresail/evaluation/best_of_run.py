"""Samples of a policy for problems that can be verified, each judged by the grader and scored by a reward model."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from foresail.evaluation.best_of import Candidate, Candidates
from foresail.evaluation.evaluator import Evaluator
from foresail.evaluation.run import EVALUATION_STEP, ignore
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import MODEL, NO_GRADER, LearnedReward, Reward, Term
from foresail.records import FAILURES, Group, Verdict
from foresail.rewards.grader import find_ballot
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.groups import specify_groups
from foresail.rollout.stream import sample_all, watched
from foresail.tokenizer.tokenizer import Tokenizer

SCORE = "score of the reward model"


def with_score(rules: Reward, path: Path) -> Reward:
    """The grader of right and wrong, plus the reward model's score as a term."""
    if rules.grader in (MODEL, NO_GRADER):
        raise ValueError(f'best-of-n needs a grader that says what is right, and "{rules.grader}" does not')
    term = Term(grader=MODEL, name=SCORE)
    return rules.model_copy(update={"terms": (term,), "model": LearnedReward(path=str(path))})


def sample_candidates(
    policy: Path,
    reward_model: Path,
    problems: parts.Problems,
    sampling: parts.Sampling,
    *,
    num_samples: int,
    rules: Reward,
    seed: int = 0,
    device: str = "auto",
    advance: Callable[[Future[Verdict]], None] = ignore,
) -> list[Candidates]:
    """`num_samples` for every problem, in the given order."""
    reward = with_score(rules, reward_model)
    with Evaluator(policy, max_new_tokens=sampling.max_new_tokens, device=device) as evaluator:
        tokenizer = evaluator.tokenizer
        prompted = evaluator.encode(problems, sampling.max_new_tokens)
        spec = specify_groups(tokenizer, sampling, num_samples, seed=seed, step=EVALUATION_STEP)
        attempts = len(prompted) * num_samples
        with evaluator.at_work(prompted, sampling, reward, attempts=attempts) as (fleet, examiner):
            judge = watched(examiner.judge, advance)
            groups = sample_all(fleet, prompted, spec, judge, judge_group=examiner.judge_group)
            candidates = {group.problem.id: to_candidates(group, tokenizer, reward) for group in groups}
    return [candidates[entry.problem.id] for entry in prompted]


def to_candidates(group: Group, tokenizer: Tokenizer, reward: Reward) -> Candidates:
    ballot = find_ballot(reward)
    judged = [
        Candidate(
            answer=ballot(read_trajectory(tokenizer, sample).response),
            correct=verdict.status == "correct",
            score=verdict.terms[SCORE],
        )
        for sample, verdict in zip(group.samples, group.verdicts, strict=True)
        if verdict.status not in FAILURES
    ]
    return Candidates(
        problem_id=group.problem.id, samples=tuple(judged), unjudged=len(group.samples) - len(judged)
    )
