"""Stand-ins for runs on a card: a judge of words, n-grams of characters, intervals over seeds."""

from __future__ import annotations

import random

from cleaned_set import paired
from judge_harness import draw_attacks, measure
from judge_lab import READ, RUBRIC
from judge_linear import LinearJudge, features_of, texts_in
from random_seed import random_seed
from selection_ngrams import ORDER, START, Ngrams, draw

from foresail.recipe.tables.judge import JudgeForm
from foresail.records import Message
from foresail.rewards.judging.judge import Comparison, Judge, Pair
from foresail.rewards.judging.question import pair_question

PROMPT = (Message(role="user", content="Where is it?"),)


def test_a_linear_judge_reads_answers_out_of_their_frames_and_has_no_order() -> None:
    question = pair_question(PROMPT, "here\nand there", "no", RUBRIC, READ)
    assert texts_in(question.messages[-1].content) == ("Where is it?", "here\nand there", "no")
    model = LinearJudge()
    model.train([(features_of("Where is it?", "here"), features_of("Where is it?", "no idea"))] * 4, 1e-3)
    for first, second, outcome in (("here", "no idea", "first"), ("no idea", "here", "second")):
        (verdict,) = Judge(READ, model.answer).compare(
            [Pair(prompt=PROMPT, first=first, second=second)], RUBRIC
        )
        assert isinstance(verdict, Comparison) and verdict.outcome == outcome


def test_only_without_a_seal_a_judge_that_repeats_gives_a_verdict() -> None:
    attacks = [*draw_attacks(320, random.Random(random_seed()))]
    sealed, bare = (measure(attacks, JudgeForm(seal=seal)) for seal in (True, False))
    assert sealed["frame broken"] == sealed["control token"] == sealed["parrot gives a verdict"] == 0
    assert bare["parrot gives a verdict"] > 0
    assert "second" not in sealed["servant"] and sealed["servant"]["inconsistent"] > 100


def test_shares_of_n_grams_sum_to_one() -> None:
    model = Ngrams()
    model.learn("abracadabra")
    known = {sign for context in model.followers[0].values() for sign in context}
    for before in ("", "abra", "zzz", "abracadabr"):
        text = START * ORDER + before
        shares = [2 ** -model.bits_of(text + sign, len(text)) for sign in known]
        unknown = 2 ** -model.bits_of(f"{text}?", len(text))
        assert 0.99 < sum(shares) + (10_000 - len(known)) * unknown < 1.01
    assert model.bits("abra", 0) < model.bits("aaaa", 0)


def test_random_draws_stay_within_their_characters() -> None:
    sizes = {f"row {number}": number for number in range(50)}
    drawn = [draw(sizes, 300, seed) for seed in (0, 1)]
    assert drawn[0] != drawn[1] and all(200 < sum(sizes[name] for name in own) <= 300 for own in drawn)


def test_gains_are_paired_by_seed() -> None:
    assert paired([0.5, 0.7, 0.6], [0.4, 0.6, 0.5]) == {"gains": [0.1, 0.1, 0.1], "mean": 0.1, "reach": 0.0}
    assert paired([0.5], [0.4])["reach"] is None
