"""Groups of samples with their verdicts, of many problems at once, as they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.data.problems.prompts import PromptedProblem
from foresail.evaluation.checkpoint import choose_engine, longest
from foresail.evaluation.run import Examiner
from foresail.model.decoder import Decoder
from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.records import Group
from foresail.rewards.build import open_grading
from foresail.rollout.build import build_fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.stream import sample_all
from foresail.tokenizer.tokenizer import Tokenizer


def judged_groups(
    model: Decoder,
    tokenizer: Tokenizer,
    problems: Sequence[PromptedProblem],
    group_spec: GroupSpec,
    reward: Reward,
    *,
    batch_invariant: bool,
) -> Iterator[Group]:
    """In the order in which their last verdicts come."""
    max_length = longest(problems) + group_spec.sampling.max_new_tokens
    engine = choose_engine(model, max_length, num_attempts=len(problems) * group_spec.num_samples)
    engine = engine.model_copy(update={"batch_invariant": batch_invariant})
    vocabulary = tokenizer.token_bytes() if group_spec.sampling.reads_text else ()
    fleet = build_fleet(model, engine, parts.Rollout(), max_length=max_length, vocabulary=vocabulary)
    with open_grading(reward) as grading:
        examiner = Examiner(tokenizer=tokenizer, reward=reward, grading=grading)
        yield from sample_all(fleet, problems, group_spec, examiner.judge, judge_group=examiner.judge_group)
