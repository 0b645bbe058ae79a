"""Whole runs of distillation: a student comes close to its teacher, on one tokenizer, and goes on exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_runs import train, weights
from tiny_world import MAX_NEW, MAX_PROMPT, PROBLEMS, rl_recipe, tiny_shape, write_lines

from foresail.check.inspection import inspect_sources
from foresail.data.made.arithmetic import direct, make_problems
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.distill import Distill
from foresail.recipe.stages.teacher import Teacher, WeighedTeacher
from foresail.recipe.tables.parts import Checkpoints, Lora, Model, Optimizer, Problems, Run, Sampling
from foresail.recipe.tables.reward import Reward
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.checkpoints.resume import extend
from foresail.train.stages.distill import run_distill

KEEP = Checkpoints(every=1, keep=2)


def recipe(student: Path, taught_by: Path, root: Path, **changes: Any) -> Distill:
    """The student begins with fresh weights, but for `model`."""
    shape = tiny_shape(Tokenizer.load(student).vocab_size)
    given: dict[str, Any] = {
        "run": Run(name="distill", root=str(root), device="cpu"),
        "model": Model(shape=shape, tokenizer=str(student), dtype="float32"),
        "teacher": Teacher(path=str(taught_by)),
        "data": Problems(source=PROBLEMS),
        "steps": 2,
        "prompts_per_step": 24,
        "max_prompt_tokens": MAX_PROMPT,
        "micro_batch_tokens": 256,
        "sampling": Sampling(max_new_tokens=MAX_NEW),
        "optimizer": Optimizer(lr=1e-2),
        "checkpoints": Checkpoints(every=1000),
    }
    return Distill(**given | changes)


def read(run: Path) -> list[dict[str, Any]]:
    return [record for record in RunDirectory(run).read_metrics() if record["step"]]


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without answers."""
    rows = [{"prompt": problem.prompt[-1].content} for problem in make_problems(60, seed=3, steps=(2, 2))]
    return write_lines(tmp_path_factory.mktemp("prompts") / "open.jsonl", rows)


def test_a_student_comes_close_to_its_teacher_without_any_reward(
    tiny_checkpoint: Path, prompts: Path, tmp_path: Path
) -> None:
    """Prompts without answers, which nobody grades."""
    outcome = run_distill(
        recipe(
            tiny_checkpoint,
            tiny_checkpoint,
            tmp_path,
            data=Problems(source=str(prompts)),
            reward=Reward(grader="none"),
            steps=13,
        )
    )
    found = read(outcome.run)
    apart = [record["distill/reverse"] for record in found]
    assert min(apart) >= 0 and apart[-1] < apart[0] / 3
    assert not any(name.startswith("rollout/accuracy") for name in found[0])


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Sampled advantages, low-rank pairs, several updates a step; accuracy is logged where answers are known."""
    settings: dict[str, Any] = {
        "model": Model(path=str(tiny_checkpoint), dtype="float32"),
        "teacher": Teacher(path=str(tiny_checkpoint), divergence="sampled"),
        "lora": Lora(rank=4),
        "updates_per_step": 2,
        "samples_per_prompt": 2,
        "steps": 2,
    }
    whole = run_distill(recipe(tiny_checkpoint, tiny_checkpoint, tmp_path / "whole", **settings))
    first = run_distill(
        recipe(tiny_checkpoint, tiny_checkpoint, tmp_path / "parts", **settings | {"steps": 1})
    )
    parts = run_distill(extend(RunDirectory(first.run), ["steps=2"]), resume=True)
    assert (weights(parts.checkpoint) == weights(whole.checkpoint)).all()
    one, other = read(whole.run)[-1], read(parts.run)[-1]
    for name in ("distill/sampled", "rollout/accuracy", "actor/entropy", "actor/grad_norm"):
        assert one[name] == other[name]
    assert abs(read(whole.run)[0]["distill/sampled"]) < 1e-4, "the teacher is the student here"


def test_a_teacher_beside_rewards_teaches_too(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """It is the policy as it began, so the first update is that of rewards alone, and the second is not."""
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", checkpoints=KEEP)
    for divergence in ("reverse", "sampled"):
        teacher = WeighedTeacher(path=str(tiny_checkpoint), divergence=divergence, weight=5.0)  # type: ignore[arg-type]
        taught, records = train(tiny_checkpoint, tmp_path / divergence, teacher=teacher, checkpoints=KEEP)
        first, last = (
            (weights(taught.checkpoint.with_name(step)) - weights(plain.checkpoint.with_name(step))).norm()
            for step in ("step_1", "step_2")
        )
        assert first < 1e-3 < 2e-3 < last
    assert records[0]["critic/score/mean"] > 0


def test_another_tokenizer_is_refused_before_and_at_the_start(
    tiny_checkpoint: Path, tiny_tokenizer: Path, tmp_path: Path
) -> None:
    texts = [direct(problem) for problem in make_problems(50, seed=1, steps=(1, 1))]
    other = tmp_path / "other"
    other.mkdir()
    for file in tiny_checkpoint.iterdir():
        if file.is_file():
            (other / file.name).write_bytes(file.read_bytes())
    train_bpe(texts, vocab_size=30, alphabet="seen").save(other)
    wrong = recipe(tiny_checkpoint, other, tmp_path)
    (told,) = [line for line in inspect_sources(wrong).refusals if "teacher" in line]
    assert "has another tokenizer than the student: id " in told
    with pytest.raises(ValueError, match="has another tokenizer than the student: id "):
        run_distill(wrong)


def test_the_preflight_counts_the_teacher_and_refuses_what_is_not_there(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    found = preflight(recipe(tiny_checkpoint, tiny_checkpoint, tmp_path))
    assert found.memory is not None and found.shape is not None and not found.refusals
    assert found.memory.teacher == 4 * found.shape.num_parameters
    missing = preflight(recipe(tiny_checkpoint, tmp_path / "nowhere", tmp_path))
    assert any(line.startswith("teacher.path: ") for line in missing.refusals)
    beside = rl_recipe(tiny_checkpoint, tmp_path, teacher=WeighedTeacher(path=str(tiny_checkpoint)))
    memory = preflight(beside).memory
    assert memory is not None and memory.teacher == found.memory.teacher


def test_settings_that_cannot_mean_anything_are_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    for changes, told in (
        ({"teacher": Teacher(path="x", beta=0.3)}, "teacher.beta is for"),
        ({"teacher": Teacher(path="x", divergence="sampled", temperature=2.0)}, "remove teacher.temperature"),
        ({"dynamic_sampling": {"enabled": True}}, "every group has a learning signal"),
        ({"updates_per_step": 5}, "not divisible by updates_per_step"),
    ):
        with pytest.raises(ValueError, match=told):
            recipe(tiny_checkpoint, tiny_checkpoint, tmp_path, **changes)
    with pytest.raises(ValueError, match='"none" leaves no reward'):
        rl_recipe(tiny_checkpoint, tmp_path, reward=Reward(grader="none"))
