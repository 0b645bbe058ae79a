"""From tokens to turns of text: what graders see of an episode."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, Sample, Trajectory, Turn, Verdict, single_turn
from foresail.rewards.foreign_rewards import add_ids
from foresail.rewards.grader import find_grader
from foresail.rewards.grading import InlineGrading
from foresail.rewards.group_rewards import judge_sample, reward_group
from foresail.rewards.trajectory import read_trajectory, turn_spans
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

PROBLEM = Problem(id="p", prompt=(), answer="7")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(["3+4=7"], vocab_size=270, whole_tokens=["<think>"])


def episode(tokenizer: Tokenizer, *texts: str) -> Sample:
    """episode(…, "3+4=", "8", "No.", "7"): what the world says and what the model answers, by turns."""
    parts = [tokenizer.encode(text) for text in texts]
    ids = [token for part in parts for token in part]
    return Sample(
        ids=ids,
        loss_mask=[number % 2 for number, part in enumerate(parts) for _ in part],
        logprobs=[0.0] * len(ids),
        versions=[0] * len(ids),
        turns=[number // 2 for number, part in enumerate(parts) for _ in part],
        finish="stop",
    )


def test_the_texts_of_two_turns_stay_apart(tokenizer: Tokenizer) -> None:
    sample = episode(tokenizer, "3+4=", "8", "No. ", "7")
    assert read_trajectory(tokenizer, sample) == Trajectory(
        turns=(Turn(observation="", response="8"), Turn(observation="No. ", response="7"))
    )


def test_one_turn_is_the_usual_case(tokenizer: Tokenizer) -> None:
    assert read_trajectory(tokenizer, episode(tokenizer, "3+4=", "7")) == single_turn("7")
    assert read_trajectory(tokenizer, episode(tokenizer, "3+4=")) == single_turn("")


def test_a_thought_that_the_template_opened_belongs_to_its_own_response(tokenizer: Tokenizer) -> None:
    sample = episode(tokenizer, "3+4= <think>\n", "8", "No. ", "7", "Sure? <think>", "y")
    responses = [turn.response for turn in read_trajectory(tokenizer, sample).turns]
    assert responses == ["<think>8", "7", "<think>y"]


def test_where_turns_and_their_responses_begin(tokenizer: Tokenizer) -> None:
    sample = Sample(
        ids=[*range(6)],
        loss_mask=[0, 0, 1, 1, 0, 1],
        logprobs=[0.0] * 6,
        versions=[0] * 6,
        turns=[0, 0, 0, 0, 1, 1],
        finish="stop",
    )
    assert turn_spans(sample) == [(0, 2, 4), (4, 5, 6)]
    extra = add_ids(PROBLEM, sample).extra
    assert (extra["prompt_ids"], extra["completion_ids"]) == ([0, 1, 2, 3, 4], [5])


@pytest.mark.parametrize(
    ("texts", "status"), [(("3+4=", "8", "No. ", "7"), "correct"), (("3+4=", "7", "Sure? ", "8"), "wrong")]
)
@pytest.mark.parametrize("grader", ["exact", "math"])
def test_graders_of_final_answers_see_the_last_response_only(
    tokenizer: Tokenizer, grader: str, texts: tuple[str, ...], status: str
) -> None:
    settings = Reward(grader=grader, accept="any")
    verdict = judge_sample(
        PROBLEM,
        episode(tokenizer, *texts),
        tokenizer=tokenizer,
        settings=settings,
        grading=InlineGrading(find_grader(settings)),
    )
    assert verdict.result().status == status


def test_a_grader_may_read_every_turn(tokenizer: Tokenizer) -> None:
    def count_turns(problem: Problem, trajectory: Trajectory) -> Verdict:
        return Verdict(status="correct", score=1 / len(trajectory.turns))

    def score(*texts: str) -> float:
        verdict: Future[Verdict] = judge_sample(
            PROBLEM,
            episode(tokenizer, *texts),
            tokenizer=tokenizer,
            settings=Reward(),
            grading=InlineGrading(count_turns),
        )
        return verdict.result().score

    assert (score("3+4=", "7"), score("3+4=", "8", "No. ", "7")) == (1.0, 0.5)


def test_terms_of_a_reward_count_the_tokens_of_all_turns_and_read_the_last(tokenizer: Tokenizer) -> None:
    settings = Reward(grader="exact", overlong_buffer=2, overlong_factor=1.0, format_weight=0.5)
    samples = [episode(tokenizer, "3+4=", *rest) for rest in (("7",), ("8", "No. ", "7"))]
    verdicts = [Verdict(status="correct", score=1.0)] * 2
    one, two = (sample.num_response_tokens for sample in samples)
    assert one < two
    rewards = reward_group(PROBLEM, samples, verdicts, tokenizer=tokenizer, settings=settings, limit=two)
    assert rewards == (1.0 - max(0.0, 1 - (two - one) / 2) - 0.5, 1.0 - 1.0 - 0.5)
