"""Evidence is Bayes' rule: against posteriors of enumerated worlds, and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_episodes import (
    ANSWERS,
    MASK,
    World,
    episode,
    flat_sample,
    with_gains,
    world_that_answers_at_the_end,
    world_with_a_hidden_answer,
)

from foresail.algorithms.evidence import Evidence, ScoredSample, by_turn, fade, standardize, token_evidence

WIDE = 1000.0  # a clamp that nothing reaches


def turns_of(*group: ScoredSample, clamp: float = WIDE) -> Evidence:
    return by_turn(token_evidence(group, clamp=clamp))


def scored_in(world: World, tokens: tuple[int, ...], *teachers: list[int]) -> ScoredSample:
    """What a world's exact teachers and student say of an episode, the tools' tokens left out."""
    everything = list(range(ANSWERS))
    hide = lambda found: [x if bit else None for x, bit in zip(found, MASK, strict=True)]  # noqa: E731
    return ScoredSample(
        sample=world.sample(),
        teachers=[hide(world.logprobs(tokens, answers)) for answers in teachers],
        student=hide(world.logprobs(tokens, everything)),
    )


# Bayes' rule.


@pytest.mark.parametrize("seed", range(2))
def test_evidence_sums_to_the_exact_posterior_ratio(seed):
    """Of every possible episode and every answer; tools are functions, and the episode decides about the answer."""
    world = world_that_answers_at_the_end(seed, chance=False)
    possible = [tokens for tokens in world.episodes() if world.joint[tokens].sum() > 0]
    assert len(possible) == 2 ** sum(MASK)
    for tokens in possible:
        for answer in range(ANSWERS):
            found = turns_of(scored_in(world, tokens, [answer]))
            expected = world.log_posterior_ratio(tokens, [answer])
            assert found.evidence_U.sum().item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_evidence_sums_to_the_posterior_ratio_whatever_tools_do_that_do_not_know_the_answer(seed):
    world = world_with_a_hidden_answer(seed)
    for tokens in world.episodes():
        for answer in range(ANSWERS):
            found = turns_of(scored_in(world, tokens, [answer]))
            expected = world.log_posterior_ratio(tokens, [answer])
            assert found.evidence_U.sum().item() == pytest.approx(expected, abs=1e-12)


def test_what_tools_reveal_by_chance_is_what_evidence_misses():
    """The limit of the identity: where chance decides about the answer too, that chance is no turn's merit."""
    world, most = world_that_answers_at_the_end(0, chance=True), 0.0
    for tokens in world.episodes():
        student, teacher = world.logprobs(tokens, range(ANSWERS)), world.logprobs(tokens, [1])
        missed = sum(t - s for t, s, bit in zip(teacher, student, MASK, strict=True) if not bit)
        found = turns_of(scored_in(world, tokens, [1])).evidence_U.sum().item()
        assert found + missed == pytest.approx(world.log_posterior_ratio(tokens, [1]), abs=1e-12)
        most = max(most, abs(missed))
    assert most > 0.1


def test_the_evidence_of_a_turn_is_that_of_what_was_written_in_it():
    world = world_with_a_hidden_answer(5)
    tokens = world.episodes()[37]
    gains = [
        t - s
        for t, s in zip(world.logprobs(tokens, [2]), world.logprobs(tokens, range(ANSWERS)), strict=True)
    ]
    found = turns_of(scored_in(world, tokens, [2]))
    expected = [gains[0] + gains[1], gains[3] + gains[4], gains[6]]
    assert found.evidence_U.tolist() == pytest.approx(expected, abs=1e-12)
    assert found.counted_U.tolist() == [2, 2, 1]


@pytest.mark.parametrize("seed", range(2))
def test_aliases_together_give_the_posterior_of_either(seed):
    """With aliases that are equally likely beforehand, the mean over teachers is exact."""
    world = world_with_a_hidden_answer(seed)
    world = replace(world, joint=world.joint / world.joint.sum(axis=tuple(range(len(MASK)))) / ANSWERS)
    apart = 0.0
    for tokens in world.episodes():
        found = turns_of(scored_in(world, tokens, [0], [2])).evidence_U
        expected = world.log_posterior_ratio(tokens, [0, 2])
        assert found.sum().item() == pytest.approx(expected, abs=1e-12)
        exact = turns_of(scored_in(world, tokens, [0, 2])).evidence_U  # one teacher, told both
        torch.testing.assert_close(found, exact, rtol=0, atol=1e-12)
        one = turns_of(scored_in(world, tokens, [0])).evidence_U
        apart = max(apart, (one - exact).abs().max().item())
    assert apart > 0.1


# By hand.


def test_evidence_by_hand():
    # turn 0: gains 1, -.5, 2 -> e 2.5, n 3, snr 2.5 / sqrt(5.25); turn 1: 7 and -9 clamp to 5 and -5 -> 0, snr 0
    found = turns_of(with_gains(episode((2, 3), (1, 2)), [1.0, -0.5, 2.0, 7.0, -9.0]), clamp=5.0)
    assert found.evidence_U.tolist() == pytest.approx([2.5, 0.0])
    assert found.snr_U.tolist() == pytest.approx([2.5 / math.sqrt(5.25), 0.0])
    assert found.counted_U.tolist() == found.loss_tokens_U.tolist() == [3, 2]
    assert found.known_U.tolist() == [True, True]


def test_ignored_tokens_keep_their_loss_and_do_not_count():
    sample = episode((1, 2), (1, 2))
    found = turns_of(with_gains(sample, [1.0, math.nan, math.nan, math.nan], ignored=[0, 0, 1, 0, 1, 1]))
    assert found.evidence_U.tolist() == [1.0, 0.0]
    assert found.counted_U.tolist() == [1, 0]
    assert found.loss_tokens_U.tolist() == [2, 2]
    assert found.known_U.tolist() == [True, False]


def test_one_unknown_token_makes_its_turn_unknown_and_no_other():
    found = turns_of(with_gains(episode((1, 2), (1, 2)), [1.0, math.nan, 1.0, 2.0]))
    assert found.known_U.tolist() == [False, True]
    assert found.evidence_U.tolist() == [0.0, 3.0]


def test_a_token_that_is_impossible_for_the_teacher_is_clamped_and_known():
    found = turns_of(with_gains(episode((1, 2)), [-math.inf, 1.0]), clamp=5.0)
    assert found.evidence_U.tolist() == [-4.0] and found.known_U.tolist() == [True]


@pytest.mark.parametrize(
    ("teacher", "student"),
    [(-math.inf, -math.inf), (math.inf, -1.0), (-1.0, math.inf), (None, -1.0), (-1.0, None)],
)
def test_what_is_no_log_probability_is_unknown(teacher, student):
    scored = ScoredSample(sample=episode((0, 1)), teachers=[[teacher]], student=[student])
    assert turns_of(scored).known_U.tolist() == [False]


@pytest.mark.parametrize(("teachers", "student"), [([], [-1.0]), ([None], [-1.0]), ([[-1.0]], None)])
def test_without_a_teacher_or_a_student_nothing_is_known(teachers, student):
    scored = ScoredSample(sample=episode((0, 1)), teachers=teachers, student=student)
    assert turns_of(scored).known_U.tolist() == [False]


def test_a_teacher_that_could_not_be_asked_leaves_the_others():
    sample = episode((0, 2))
    left, all_there = (
        turns_of(ScoredSample(sample=sample, teachers=teachers, student=[-2.0, -2.0]))
        for teachers in ([None, [-1.0, -1.5]], [[-1.0, -1.5]])
    )
    assert torch.equal(left.evidence_U, all_there.evidence_U) and left.evidence_U.item() == 1.5


def test_tensors_and_lists_are_alike_and_gradients_stay_behind():
    sample = episode((0, 2))
    lists = ScoredSample(sample=sample, teachers=[[-1.0, -0.5]], student=[-2.0, -2.0])
    tensors = ScoredSample(
        sample=sample,
        teachers=[torch.tensor([-1.0, -0.5], requires_grad=True)],
        student=torch.tensor([-2.0, -2.0]),
    )
    found = turns_of(tensors).evidence_U
    assert torch.equal(found, turns_of(lists).evidence_U) and not found.requires_grad


def test_lists_of_another_length_are_refused():
    sample = episode((1, 1))
    with pytest.raises(ValueError, match="3 log-probabilities for a sample of 2 tokens; give one for each"):
        turns_of(ScoredSample(sample=sample, teachers=[[0.0] * 3], student=[0.0] * 2))
    with pytest.raises(ValueError, match="1 ignored for a sample of 2 tokens"):
        turns_of(ScoredSample(sample=sample, teachers=[], student=None, ignored=[1]))


def test_two_teachers_by_hand():
    # beliefs 1/2, 1/2 -> .3; then .2/.6 and .4/.6 -> .2/3 + .1 * 2/3
    log = lambda *shares: [math.log(share) for share in shares]  # noqa: E731
    scored = ScoredSample(sample=episode((0, 2)), teachers=[log(0.2, 0.2), log(0.4, 0.1)], student=[0.0, 0.0])
    gains = token_evidence([scored], clamp=WIDE).gains_T.tolist()
    assert gains == pytest.approx(log(0.3, 0.2 / 3 + 0.2 / 3), abs=1e-14)


def test_a_long_episode_s_aliases_sum_to_the_log_mean_of_their_likelihoods():
    """Thousands of tokens of which one alias holds some for impossible."""
    rng = np.random.default_rng(0)
    teachers = np.log(rng.uniform(0.05, 1, size=(3, 4000)))
    teachers[0, 100:200] = -math.inf
    sample = flat_sample([1] * 4000, [0] * 4000)
    scored = ScoredSample(sample=sample, teachers=teachers.tolist(), student=[0.0] * 4000)
    sums = np.maximum(teachers, -100).sum(1)
    expected = sums.max() + math.log(np.exp(sums - sums.max()).mean())
    assert turns_of(scored).evidence_U.item() == pytest.approx(expected, rel=1e-12)


# Within the group.


def test_units_are_compared_by_evidence_over_the_root_of_their_tokens():
    # x: 4 / sqrt(4) = 2, 1 / 1 = 1; 0: mean 1, std sqrt(2/3)
    first = with_gains(episode((0, 4), (1, 1)), [1.0, 1.0, 1.0, 1.0, 1.0])
    second = with_gains(episode((0, 1)), [0.0])
    unit = math.sqrt(1.5)
    assert standardize(turns_of(first, second)).tolist() == pytest.approx([unit, 0.0, -unit], abs=1e-5)


def test_evidence_fades_by_hand():
    found = fade(turns_of(with_gains(episode(*[(0, 1)] * 4), [1.0, -4.0, 2.0, -1.0])))
    after = 1 - 4
    expected = [1.0, -4.0, 2 * math.exp(after), -math.exp(after + 2)]
    assert found.evidence_U.tolist() == pytest.approx(expected, abs=1e-12)


def test_unknown_turns_take_no_part_in_the_comparison():
    known = with_gains(episode((0, 1), (0, 1)), [1.0, 3.0])
    with_unknown = with_gains(episode((0, 1), (0, 1), (0, 1)), [1.0, math.nan, 3.0])
    plain, partial = standardize(turns_of(known)), standardize(turns_of(with_unknown))
    assert partial.tolist() == [plain[0], 0.0, plain[1]] and plain[1] > 0.9


@pytest.mark.parametrize("gains", [[0.7, 0.7, 0.7], [0.7], [], [0.1 + 0.2, 0.3], [math.nan, 2.0]])
def test_units_that_are_alike_or_alone_are_at_zero(gains):
    found = turns_of(with_gains(episode(*[(0, 1)] * len(gains)), gains))
    assert standardize(found).tolist() == [0.0] * len(gains)
