"""Best-of-n: the closed form against all subsets, and a whole measurement."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
import torch
from tiny_world import HELD_OUT, write_lines

from foresail.evaluation.best_of import Candidate, Candidates, best_of, best_of_figures, majority_of
from foresail.evaluation.metrics import majority_at_k, pass_at_k


def test_the_best_of_k_is_its_mean_over_all_subsets_for_any_scores_with_ties():
    chance = random.Random(0)
    for _ in range(40):
        n = chance.randint(1, 8)
        scores = [chance.choice([0.0, 0.5, 1.0, chance.random()]) for _ in range(n)]
        correct = [chance.random() < 0.5 for _ in range(n)]
        for k in range(1, n + 1):
            expected = []
            for some in combinations(range(n), k):
                top = max(scores[i] for i in some)
                expected.append(fmean(correct[i] for i in some if scores[i] == top))
            assert best_of(scores, correct, k) == pytest.approx(fmean(expected))


def test_a_perfect_judge_finds_what_is_there_and_a_blind_one_guesses():
    correct = [True, False, False, True, False, False]
    for k in (1, 3, 6):
        assert best_of([float(right) for right in correct], correct, k) == pytest.approx(pass_at_k(6, 2, k))
        assert best_of([0.0] * 6, correct, k) == pytest.approx(1 / 3)


def test_the_majority_is_exact_for_one_and_for_all_and_near_between():
    answers, correct = [*"aabbc"], [True, True, False, False, False]
    assert majority_of(answers, correct, 1, seed=0) == 0.4
    assert majority_of(answers, correct, 5, seed=0) == majority_at_k(answers, correct) == 0.5
    exact = fmean(
        majority_at_k([answers[i] for i in some], [correct[i] for i in some])
        for some in combinations(range(5), 3)
    )
    drawn = fmean(majority_of(answers, correct, 3, seed=seed) for seed in range(30))
    assert drawn == pytest.approx(exact, abs=0.02)


def test_figures_are_over_problems_with_enough_samples():
    def problem(name: str, count: int) -> Candidates:
        samples = [Candidate(answer=str(i), correct=i == 0, score=float(-i)) for i in range(count)]
        return Candidates(problem_id=name, samples=tuple(samples))

    found = best_of_figures([problem("a", 4), problem("b", 2)])
    assert [*found] == ["1", "2", "4"]
    assert found["4"]["best_of"]["problems"] == 1 and found["2"]["best_of"]["problems"] == 2
    assert found["2"]["best_of"]["value"] == pytest.approx((0.5 + 1) / 2)
    assert found["4"]["pass"]["value"] == 1 and found["4"]["lead"]["value"] == pytest.approx(0.75)


def test_samples_of_which_none_is_judged_have_no_figures():
    with pytest.raises(ValueError, match="none of 8 samples could be judged"):
        best_of_figures([Candidates(problem_id="a", samples=(), unjudged=8)])


def test_pairs_that_are_not_scored_are_counted_and_no_number_is_no_score(
    tiny_checkpoint: Path, tmp_path: Path
):
    from foresail.evaluation.pair_run import score_leads
    from foresail.model.hf import load_model
    from foresail.recipe.tables.sources import HeldOutPreferences
    from foresail.tokenizer.tokenizer import Tokenizer
    from foresail.train.learner import save_weights

    model = load_model(tiny_checkpoint, dtype=torch.float32, device="cpu", scores=True)
    save_weights(model, Tokenizer.load(tiny_checkpoint), tmp_path / "rm")
    rows = [
        {"prompt": "1 +1 *3", "chosen": "\\boxed{4}", "rejected": "\\boxed{5}"},
        {"prompt": "1 +1 *3", "chosen": "\\boxed{4}", "rejected": "\\boxed{4}"},
        {"prompt": "1 +1 *3 " * 9, "chosen": "\\boxed{4}", "rejected": "\\boxed{5}"},
    ]
    pairs = HeldOutPreferences(source=str(write_lines(tmp_path / "pairs.jsonl", rows)), too_long="drop")
    found = score_leads(tmp_path / "rm", pairs, device="cpu")
    assert len(found.leads) == 1
    assert found.left_out == {"with equal answers": 1, "longer than the model's context of 32": 1}
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    save_weights(model, Tokenizer.load(tiny_checkpoint), tmp_path / "broken")
    with pytest.raises(ValueError, match=r"gave nan for .*pairs.jsonl:1 chosen, which is no score"):
        score_leads(tmp_path / "broken", pairs, device="cpu")


def test_the_command_measures_pairs_and_best_of_n(tiny_checkpoint: Path, tmp_path: Path):
    from foresail.commands.eval_reward import eval_reward
    from foresail.model.hf import load_model
    from foresail.tokenizer.tokenizer import Tokenizer
    from foresail.train.learner import save_weights

    model = load_model(tiny_checkpoint, dtype=torch.float32, device="cpu", scores=True)
    save_weights(model, Tokenizer.load(tiny_checkpoint), tmp_path / "rm")
    rows = [{"prompt": f"{n} +1 *3", "chosen": "\\boxed{4}", "rejected": "\\boxed{5}"} for n in range(9)]
    eval_reward(
        tmp_path / "rm",
        pairs=str(write_lines(tmp_path / "pairs.jsonl", rows)),
        policy=tiny_checkpoint,
        data=HELD_OUT,
        samples=8,
        max_new_tokens=8,
        limit=9,
        device="cpu",
        output=tmp_path / "out",
    )
    found = json.loads((tmp_path / "out/figures.json").read_text())
    assert found["pairs"]["count"] == 9 and [*found["best_of"]["n"]] == ["1", "2", "4", "8"]
    one = found["best_of"]["n"]["1"]
    assert one["best_of"]["value"] == pytest.approx(one["pass"]["value"])
    assert found["best_of"]["unjudged"] == 0 and (tmp_path / "out/reward_model.png").exists()
    assert len((tmp_path / "out/candidates.jsonl").read_text().splitlines()) == 9
