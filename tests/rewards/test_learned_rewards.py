"""A reward model as a grader: alone, as a term beside rules, and when it fails."""

from __future__ import annotations

import math
import random
from concurrent.futures import wait
from pathlib import Path

import pytest
import torch

from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.tables.reward import LearnedReward, Reward, Term
from foresail.records import Message, Problem, Sample, Trajectory, Turn, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.group_rewards import judge_sample, pay
from foresail.rewards.learned import open_scorer
from foresail.rewards.scoring import score_answers
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights

PROBLEM = Problem(id="1", prompt=(Message(role="user", content="7 +5 *3"),), answer="6")
RIGHT, WRONG = "\\boxed{6}", "\\boxed{3}"


@pytest.fixture(scope="module")
def scorer_folder(tiny_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_world import tiny_shape

    tokenizer = Tokenizer.load(tiny_tokenizer)
    folder = tmp_path_factory.mktemp("rm")
    save_weights(build_model(tiny_shape(tokenizer.vocab_size).with_score(), seed=0), tokenizer, folder)
    return folder


def learned(folder: Path, **changes) -> LearnedReward:
    return LearnedReward(path=str(folder), **changes)


def to_sample(tokenizer: Tokenizer, answer: str) -> Sample:
    prompt, said = tokenizer.encode_prompt(PROBLEM.prompt), [*tokenizer.encode(answer), tokenizer.eos_ids[0]]
    size = len(prompt) + len(said)
    return Sample(
        ids=prompt + said,
        loss_mask=[0] * len(prompt) + [1] * len(said),
        logprobs=[0.0] * size,
        versions=[0] * size,
        turns=[0] * size,
        finish="stop",
    )


def test_alone_its_score_of_the_samples_own_ids_is_the_reward(scorer_folder, tiny_tokenizer):
    settings, tokenizer = Reward(grader="model", model=learned(scorer_folder)), Tokenizer.load(tiny_tokenizer)
    sample = to_sample(tokenizer, WRONG)
    with open_grading(settings, device="cpu") as grading:
        verdict = judge_sample(
            PROBLEM, sample, tokenizer=tokenizer, settings=settings, grading=grading
        ).result(60)
        model = grading.scorer.model
        # from text alone, the reward model's own chat template makes the same of it
        told = grading.submit(PROBLEM, single_turn(WRONG)).result(60)
    (expected,) = score_answers(model, [sample.ids], starts=[3], max_tokens=64)
    assert verdict.status == "scored" and verdict.score == pytest.approx(expected, abs=1e-6)
    assert pay(verdict, settings) == verdict.score and told.score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("answer", [RIGHT, WRONG])
def test_as_a_term_it_is_weighed_beside_what_the_rule_says(scorer_folder, answer):
    terms = (Term(grader="model", weight=0.5, name="taste"),)
    settings = Reward(terms=terms, model=learned(scorer_folder))
    with open_grading(settings, device="cpu") as grading:
        verdict = grading.submit(PROBLEM, single_turn(answer)).result(60)
        alone = open_scorer(settings.model, device="cpu")
        assert alone is grading.scorer  # one model for all who ask for it
        (score,) = alone.score([alone.encode(PROBLEM, single_turn(answer))])
    assert verdict.status == ("correct" if answer == RIGHT else "wrong")
    assert verdict.terms == {"taste": pytest.approx(score, abs=1e-5)}
    assert pay(verdict, settings) == pytest.approx((answer == RIGHT) + 0.5 * score, abs=1e-5)


def test_as_the_main_grader_it_goes_with_terms_of_ones_own(scorer_folder):
    def brevity(completions, **_):
        return [-float(len(text)) for text in completions]

    settings = Reward(
        grader="model",
        model=learned(scorer_folder),
        terms=(Term(grader=brevity, weight=0.1, name="brevity"),),
    )
    with open_grading(settings, device="cpu") as grading:
        early = grading.submit_early(PROBLEM, single_turn(RIGHT)) if grading.traits.group else None
        verdict = (early or grading.submit(PROBLEM, single_turn(RIGHT))).result(60)
        assert verdict.status == "scored" and verdict.score != 0
        if early is None:
            assert verdict.terms == {"brevity": -float(len(RIGHT))}


def test_mean_std_and_clip_are_applied_in_this_order(scorer_folder):
    scorer = open_scorer(learned(scorer_folder, mean=1.0, std=2.0, clip=3.0), device="cpu")
    assert [scorer.pay(score) for score in (5.0, 11.0, -50.0)] == [2.0, 3.0, -3.0]
    assert math.isnan(scorer.pay(math.nan))


def test_what_it_cannot_read_is_ungradable_and_what_is_no_number_crashed(scorer_folder, monkeypatch):
    long = Problem(id="2", prompt=(Message(role="user", content="7 +5 *3 " * 9),), answer="6")
    twice = Trajectory(turns=(Turn(observation="", response=RIGHT), Turn(observation="x", response=RIGHT)))
    settings = Reward(model=learned(scorer_folder), terms=(Term(grader="model"),))
    with open_grading(settings, device="cpu") as grading:
        found = [grading.submit(*pair).result(60) for pair in ((long, single_turn(RIGHT)), (PROBLEM, twice))]
        assert [verdict.status for verdict in found] == ["ungradable", "ungradable"]
        assert "exceed the reward model's context of 32" in found[0].detail
        weight = grading.scorer.model.head.weight
        kept = weight.clone()
        weight.fill_(math.nan)
        broken = grading.submit(PROBLEM, single_turn(RIGHT)).result(60)
        weight.copy_(kept)
        assert (broken.status, pay(broken, settings)) == ("crashed", None)
        assert "gave nan, which is no score" in broken.detail


def test_one_answer_that_breaks_it_does_not_fail_those_beside_it(scorer_folder, monkeypatch):
    settings, forward = Reward(grader="model", model=learned(scorer_folder)), Decoder.forward
    with open_grading(settings, device="cpu") as grading:
        (bad,) = grading.scorer.tokenizer.encode("9")

        def fail(model, ids_T, *arguments):
            if (ids_T == bad).any():
                raise RuntimeError("out of memory")
            return forward(model, ids_T, *arguments)

        monkeypatch.setattr(Decoder, "forward", fail)
        answers = ["\\boxed{1}", "\\boxed{9}", "\\boxed{2}"] * 4
        futures = [grading.submit(PROBLEM, single_turn(answer)) for answer in answers]
        wait(futures, timeout=60)
        statuses = [future.result().status for future in futures]
    assert statuses == ["scored", "crashed", "scored"] * 4
    assert "out of memory" in futures[1].result().detail


def test_scores_do_not_depend_on_how_many_wait_and_cancelled_ones_are_let_go(scorer_folder):
    chance, settings = random.Random(0), Reward(grader="model", model=learned(scorer_folder, batch_tokens=40))
    answers = ["".join(chance.choices("0123456789", k=chance.randint(1, 6))) for _ in range(30)]
    with open_grading(settings, device="cpu") as grading:
        alone = [grading.submit(PROBLEM, single_turn(answer)).result(60).score for answer in answers]
        futures = [grading.submit(PROBLEM, single_turn(answer)) for answer in answers]
        futures[7].cancel()
        together = [future.result(60).score if n != 7 else alone[7] for n, future in enumerate(futures)]
    torch.testing.assert_close(torch.tensor(together), torch.tensor(alone), atol=1e-5, rtol=0)


def test_without_its_table_or_with_a_language_model_it_is_refused(tiny_checkpoint):
    with pytest.raises(ValueError, match=r'grader "model" needs a reward model; add \[reward.model\]'):
        Reward(grader="model")
    with pytest.raises(ValueError, match="wrong and correct are the rewards for verdicts"):
        Reward(grader="model", model=LearnedReward(path="x"), wrong=-1.0)
    with pytest.raises(ValueError, match=r"reward\.model\.path: no checkpoint directory nowhere"):
        open_grading(Reward(grader="model", model=LearnedReward(path="nowhere")), device="cpu")
    with pytest.raises(ValueError, match="is a language model, which gives words and no score"):
        open_grading(Reward(grader="model", model=learned(tiny_checkpoint)), device="cpu")
