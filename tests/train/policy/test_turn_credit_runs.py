"""Credit by turns in the stage: what is scored, what is logged, and that without strength nothing changes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from agent_world import WORLD
from small_runs import train, weights
from tiny_world import MAX_NEW, make_tokenizer, tiny_shape

from foresail.data.problems.hints import with_hint
from foresail.model.hf import build_model
from foresail.recipe.tables.credit import Credit
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Advantage, Critic, Engine, Sampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import Group, Message, Problem, Sample, TrainSequence, Verdict
from foresail.runlog.directory import RunDirectory
from foresail.train.policy.policy_update import add_logprobs
from foresail.train.policy.turn_credit import answers_of, final_answer, score_groups
from foresail.train.update.batches import token_rewards
from foresail.train.update.scoring import score_sequences

if TYPE_CHECKING:
    from command_line import CommandLine

TOKENIZER = make_tokenizer()
HINT = "+{answer}"  # in the few characters that the tiny tokenizer knows
CPU = torch.device("cpu")


def pbsd(**changes) -> Credit:
    return Credit(kind="pbsd", hint=HINT, **{"min_tokens": 1, "min_snr": 0.0, **changes})


def sample_of(*turns: tuple[str, str]) -> Sample:
    """Of what the world said and what the model answered to it."""
    ids: list[int] = []
    mask: list[int] = []
    numbers: list[int] = []
    for turn, (said, answered) in enumerate(turns):
        theirs, ours = TOKENIZER.encode(said), TOKENIZER.encode(answered)
        ids += [*theirs, *ours]
        mask += [0] * len(theirs) + [1] * len(ours)
        numbers += [turn] * (len(theirs) + len(ours))
    zeros = [0] * len(ids)
    return Sample(
        ids=ids, loss_mask=mask, logprobs=[0.0] * len(ids), versions=zeros, turns=numbers, finish="stop"
    )


PROMPT = "<|user|>7 +1<|assistant|>"
SAMPLES = (
    sample_of((PROMPT, "1"), ("<|tool|>7<|assistant|>", r"\boxed{8}")),
    sample_of((PROMPT, "1 +1"), ("<|tool|>1<|assistant|>", "7"), ("<|tool|>3<|assistant|>", r"\boxed{2}")),
)


def group_of(answer: str = "8", name: str = "p") -> Group:
    return Group(
        problem=Problem(id=name, prompt=(Message(role="user", content="7 +1"),), answer=answer),
        samples=SAMPLES,
        verdicts=(Verdict(status="correct", score=1.0), Verdict(status="wrong", score=0.0)),
        rewards=(1.0, 0.0),
    )


def test_scores_are_those_of_each_sequence_alone() -> None:
    model = build_model(tiny_shape(TOKENIZER.vocab_size).model_copy(update={"max_context": 64}), seed=0)
    sequences = [TrainSequence(ids=sample.ids, loss_mask=sample.loss_mask) for sample in SAMPLES * 3]

    def score(chosen: list[TrainSequence], tokens: int) -> list[torch.Tensor]:
        return score_sequences(model, chosen, temperature=0.7, micro_batch_tokens=tokens, device=CPU)

    alone = [score([sequence], 8)[0] for sequence in sequences]
    for tokens in (8, 64, 4096):
        for found, expected, sequence in zip(score(sequences, tokens), alone, sequences, strict=True):
            assert [math.isnan(value) for value in found] == [not mask for mask in sequence.loss_mask]
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("student", ["plain", "placebo", "contrastive"])
def test_teachers_and_student_read_the_same_tokens_behind_their_own_prompts(student: str) -> None:
    settings = pbsd(student=student, **({"withheld": "1"} if student == "placebo" else {}))
    groups = [group_of("8"), group_of("3", "q")]
    seen: list[TrainSequence] = []

    def score(sequences: list[TrainSequence]) -> list[torch.Tensor]:
        seen.extend(sequences)
        return [torch.arange(len(sequence.ids), dtype=torch.float32) for sequence in sequences]

    scored = score_groups(groups, settings, tokenizer=TOKENIZER, max_length=64, score=score)
    prompts = {
        TOKENIZER.decode(sequence.ids[: sequence.loss_mask.index(1)]).replace(" ", "") for sequence in seen
    }
    told = {"plain": "", "placebo": "+1", "contrastive": "+3"}[student]
    assert f"<|user|>7+1{told}<|assistant|>" in prompts and "<|user|>7+1+8<|assistant|>" in prompts
    for group, row in zip(groups, scored, strict=True):
        for sample, found in zip(group.samples, row, strict=True):
            first = sample.loss_mask.index(1)
            assert found.sample is sample and len(found.teachers) == 1
            for logprobs in (found.student, found.teachers[0]):
                assert len(logprobs) == len(sample.ids) and all(
                    math.isnan(value) for value in logprobs[:first]
                )
                behind = [value - logprobs[first] for value in logprobs[first:]]
                assert behind == list(range(len(behind)))


def test_a_mixed_student_is_told_a_wrong_answer_where_the_sample_is_right() -> None:
    seen: list[str] = []

    def score(sequences: list[TrainSequence]) -> list[torch.Tensor]:
        seen.extend(TOKENIZER.decode(sequence.ids).replace(" ", "") for sequence in sequences)
        return [torch.zeros(len(sequence.ids)) for sequence in sequences]

    groups = [group_of("8"), group_of("3", "q")]
    score_groups(groups, pbsd(student="mixed"), tokenizer=TOKENIZER, max_length=64, score=score)
    right, wrong = (TOKENIZER.decode(sample.ids).replace(" ", "") for sample in SAMPLES)
    teachers = [f"7+1{hint}".join(text.split("7+1", 1)) for hint in ("+8", "+3") for text in (right, wrong)]
    students = [f"7+1{hint}".join(right.split("7+1", 1)) for hint in ("+8", "+3")] + [wrong, wrong]
    assert Counter(seen) == Counter(teachers + students)


def test_what_does_not_fit_the_context_is_left_unknown() -> None:
    longest = max(len(sample.ids) for sample in SAMPLES)
    scored = score_groups(
        [group_of()],
        pbsd(),
        tokenizer=TOKENIZER,
        max_length=longest,
        score=lambda chosen: [torch.zeros(99)] * len(chosen),
    )
    assert [found.teachers[0] is None for found in scored[0]] == [False, True]


def test_the_final_answer_is_not_counted() -> None:
    spelled = TOKENIZER.token_bytes()
    for sample in SAMPLES:
        ignored = final_answer(sample, group_of().problem, spelled)
        said = TOKENIZER.decode([n for n, skip in zip(sample.ids, ignored, strict=True) if skip])
        assert said in (r"\boxed{8}", r"\boxed{2}")
    plain = sample_of((PROMPT, "1 +7 8"))
    assert sum(final_answer(plain, group_of().problem, spelled)) == len(TOKENIZER.encode("8"))
    assert not any(final_answer(sample_of((PROMPT, "1 +7")), group_of().problem, spelled))


def test_the_final_answer_is_counted_where_the_recipe_says_so() -> None:
    def ignored(**changes) -> list[bool]:
        zeros = [torch.zeros(64)] * 4
        (scored,) = score_groups(
            [group_of()], pbsd(**changes), tokenizer=TOKENIZER, max_length=64, score=lambda chosen: zeros
        )
        return [any(found.ignored or ()) for found in scored]

    assert ignored() == [True, True] and ignored(answer="counted") == [False, False]


def test_an_answer_that_is_not_there_is_not_told() -> None:
    assert answers_of(group_of("").problem) == []
    named = replace(group_of("8").problem, extra={"aliases": ["8", "eight", ""]})
    assert answers_of(named) == ["8", "eight"]
    assert [m.content for m in with_hint([Message(role="system", content="a")], "!")] == ["a!"]


# Whole runs.


def test_a_hint_that_the_tokenizer_cannot_write_is_told_before_the_first_step(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        ValueError, match=r"credit.hint, which tells the teacher the answer: the tokenizer has no"
    ):
        train(tiny_checkpoint, tmp_path, credit=Credit(kind="pbsd"))


@pytest.fixture
def episodes(tmp_path: Path) -> dict[str, object]:
    (tmp_path / "my_world.py").write_text(WORLD)
    return {
        "environment": Environment(name=f"{tmp_path}/my_world.py:Again"),
        "sampling": Sampling(max_new_tokens=2 * MAX_NEW),
        "steps": 2,
    }


def test_without_strength_it_is_grpo_bit_for_bit(tiny_checkpoint: Path, tmp_path: Path, episodes) -> None:
    # else which turns share a batch depends on the machine
    episodes |= {"engine": Engine(batch_invariant=True), "prompts_per_step": 4}
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", **episodes)
    credited, _ = train(tiny_checkpoint, tmp_path / "pbsd", credit=pbsd(strength=0.0), **episodes)
    assert weights(plain.checkpoint).equal(weights(credited.checkpoint))


def test_the_student_takes_the_place_of_the_trainer_s_own_pass(
    tiny_checkpoint: Path, tmp_path: Path, episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same weights as with a pass of its own; one less for a student who was told nothing."""
    passes: list[object] = []

    def counted(batch, temperature, *, old, reference):
        passes.append(old)
        return add_logprobs(batch, temperature, old=old, reference=reference)

    monkeypatch.setattr("foresail.train.policy.policy_update.add_logprobs", counted)
    episodes |= {"engine": Engine(batch_invariant=True), "loss": Loss(old_logprobs="trainer")}
    episodes["prompts_per_step"] = 4
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", **episodes)
    assert passes and None not in passes
    passes.clear()
    credited, _ = train(tiny_checkpoint, tmp_path / "pbsd", credit=pbsd(strength=0.0), **episodes)
    assert passes and {*passes} == {None}
    torch.testing.assert_close(weights(plain.checkpoint), weights(credited.checkpoint), rtol=0, atol=1e-6)
    passes.clear()
    placebo = pbsd(strength=0.0, student="placebo", withheld="1")
    train(tiny_checkpoint, tmp_path / "placebo", credit=placebo, **episodes)
    assert passes and None not in passes


@pytest.mark.parametrize("level", ["turn", "token"])
def test_evidence_and_weights_are_in_the_log(
    tiny_checkpoint: Path, tmp_path: Path, episodes, level, foresail: CommandLine
) -> None:
    settings = {"level": level} | ({"min_tokens": 1, "min_snr": 0.0} if level == "turn" else {})
    credit = Credit(kind="pbsd", hint=HINT, **settings)
    outcome, records = train(tiny_checkpoint, tmp_path, credit=credit, **episodes)
    rows = [row for row in RunDirectory(outcome.run).read_rollouts(1) if row["used"]]
    assert rows
    for row in rows:
        found = row["credit"]
        assert len(found["weight"]) == len(row.get("turns", [None]))
        credit = sum(w * n for w, n in zip(found["weight"], found["tokens"], strict=True))
        assert credit == pytest.approx(sum(found["tokens"]))
    assert any(abs(weight - 1) > 1e-3 for row in rows for weight in row["credit"]["weight"])
    assert records[0]["credit/weight/std"] > 0 and records[0]["credit/used/share"] > 0
    name = f"{rows[0]['problem']}.{rows[0]['sample']}"
    shown = foresail.run("show", outcome.run, "--episode", name, "--step", 1).out
    assert f"{name}, step 1: " in shown and f"weight {rows[0]['credit']['weight'][0]:.2f}" in shown
    assert shown.count("  model    ") == len(rows[0].get("turns", [None]))
    assert (
        "there is no episode nobody.7 in any step; step 2 has "
        in foresail.run("show", outcome.run, "--episode", "nobody.7").err
    )


def test_rewards_of_turns_change_what_is_learned(tiny_checkpoint: Path, tmp_path: Path, episodes) -> None:
    rewarding = WORLD.replace(
        "done=self.asked == 2)", "done=self.asked == 2, reward=float(len(response) % 2))"
    )
    (tmp_path / "my_world.py").write_text(rewarding)
    found = [
        weights(train(tiny_checkpoint, tmp_path / kind, credit=Credit(kind=kind), **episodes)[0].checkpoint)
        for kind in ("uniform", "turn_rewards")
    ]
    assert not found[0].equal(found[1])


def test_a_critic_that_judges_turns(tiny_checkpoint: Path, tmp_path: Path, episodes) -> None:
    settings = {"advantage": Advantage(kind="gae"), "critic": Critic(kind="head"), **episodes}
    settings["dynamic_sampling"] = DynamicSampling(enabled=False)
    found = [
        weights(train(tiny_checkpoint, tmp_path / kind, credit=Credit(kind=kind), **settings)[0].checkpoint)
        for kind in ("uniform", "turn_gae")
    ]
    assert not found[0].equal(found[1])
    assert all(values.isfinite().all() for values in found)


def test_rewards_stand_at_the_last_tokens_of_turns() -> None:
    sample = replace(SAMPLES[1], turn_rewards=(0.5, None))
    rewards = token_rewards(sample, 1.0, by_turn=True)
    written = [(turn, place) for place, turn in enumerate(sample.turns) if sample.loss_mask[place]]
    ends = [max(place for turn, place in written if turn == number) for number in range(3)]
    assert {place: reward for place, reward in enumerate(rewards) if reward} == {ends[0]: 0.5, ends[2]: 1.0}
    assert sum(token_rewards(sample, 1.0, by_turn=False)) == 1.0
