"""Whatever is damaged in a run's folder, a resume refuses it, tells of it, or has exactly what was saved.

Every file of a run is damaged in every way, at the same places every time; FORESAIL_FUZZ=10 tries ten times more.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from damaged_files import damages, files_of, sibling
from tiny_world import sft_recipe

from foresail.api.stages import relocate
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.tables.parts import Checkpoints
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import latest_checkpoint
from foresail.train.checkpoints.resume import extend, finished_checkpoint, go_back, read_recipe
from foresail.train.learner import open_policy
from foresail.train.session import begin_again, describe_damage
from foresail.train.stages.sft import run_sft

TIMES = int(os.environ.get("FORESAIL_FUZZ", "1"))
CPU = torch.device("cpu")
PLACES = ("root", "name")
LOG = ("metrics.jsonl", "timeline.jsonl")  # nothing that is learned hangs on these


class Resumed(NamedTuple):
    """What a resume would begin with."""

    recipe: dict[str, Any]
    progress: dict[str, Any]
    tensors: dict[str, bytes]
    warnings: list[str]


@pytest.fixture(scope="module")
def saved_run(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root, settings = tmp_path_factory.mktemp("damaged"), Checkpoints(every=1, keep=2)
    return run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, root, steps=3, checkpoints=settings)).run


def resume(folder: Path) -> Resumed:
    """As `foresail resume` reads it, up to the first step."""
    run = RunDirectory.open(folder)
    recipe, start = read_recipe(run), latest_checkpoint(run)
    assert start is not None
    progress = begin_again(run, start, recipe)
    warnings = [*describe_damage(run, start)]
    run.rewind(progress.step)
    policy, _ = open_policy(recipe, start, CPU)
    assert policy.optimizer is not None
    tensors = {**policy.model.state_dict(), **policy.optimizer.state()}
    values = recipe.model_dump()
    values["run"] = {key: value for key, value in values["run"].items() if key not in PLACES}
    return Resumed(
        values,
        asdict(progress),
        {name: tensor.detach().numpy().tobytes() for name, tensor in tensors.items()},
        warnings,
    )


def test_no_damaged_file_is_gone_on_with_in_silence(saved_run: Path, tmp_path: Path) -> None:
    """Of the checkpoint that a resume reads, and of the run's folder."""
    chance, wrong, tried = random.Random("damage"), [], 0
    copy = Path(shutil.copytree(saved_run, tmp_path / "copy"))
    whole = resume(copy)
    assert whole.warnings == []
    for name in [name for name in files_of(saved_run) if "step_2" not in name.parts]:
        other = sibling(copy, name, [2, 3])
        for what, damage in damages(copy / name, other, chance, count=2 * TIMES):
            damage()
            tried += 1
            try:
                found = resume(copy)
            except (ValueError, OSError) as error:
                # of all files of a checkpoint that has another's manifest, the first is named
                if name.name not in str(error) and not (name.stem == "manifest" and "step_3/" in str(error)):
                    wrong.append(f"{name}, {what}: says {error}")
            else:
                told = any(name.name in line for line in found.warnings)
                history = name.name == "metrics.jsonl" and what != "a line more"  # which is cut off again
                if found[:3] != whole[:3] or (history and not told):
                    wrong.append(f"{name}, {what}: goes on in silence")
            for file in {name, *map(Path, LOG)}:
                restore(saved_run / file, copy / file)
    assert wrong == []
    assert tried > 140 * TIMES


def restore(source: Path, file: Path) -> None:
    if file.is_dir():
        file.rmdir()
    shutil.copyfile(source, file)


@pytest.fixture
def run(saved_run: Path, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(saved_run, tmp_path / "run"))


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert text.count(before) == 1
    file.write_text(text.replace(before, after))


def test_a_recipe_that_was_changed_by_hand_is_refused_by_key(run: RunDirectory) -> None:
    edit(run.recipe_path, "\nlr = 0.005 ", "\nlr = 0.05 ")
    with pytest.raises(
        RecipeError, match=r"optimizer\.lr is 0\.05, was 0\.005\. To go on as it was, copy .*"
    ):
        resume(run.path)
    with pytest.raises(RecipeError, match=r"optimizer\.lr is 0\.05, was 0\.005"):
        extend(run, ["steps=9"])
    shutil.copyfile(run.checkpoint_path(3) / "trainer/recipe.toml", run.recipe_path)
    assert resume(run.path).progress["step"] == 3
    extend(run, ["steps=9"])
    assert resume(run.path).recipe["steps"] == 9


def test_keys_that_may_change_are_refused_by_hand_and_taken_from_the_command(run: RunDirectory) -> None:
    edit(run.recipe_path, "\nsteps = 3 ", "\nsteps = 9 ")
    with pytest.raises(RecipeError, match="steps is 9, was 3"):
        resume(run.path)
    with pytest.raises(RecipeError, match="steps is 9, was 3"):
        extend(run, ["eval_every=2"])
    extend(run, ["steps=9"])
    found = resume(run.path)
    assert found.recipe["steps"] == 9 and not found.progress["finished"]


def test_comments_in_a_recipe_may_change(run: RunDirectory) -> None:
    run.recipe_path.write_text(run.recipe_path.read_text() + "\n# remember: the first run with clean data\n")
    assert resume(run.path).warnings == []


def test_a_recipe_is_watched_before_the_first_checkpoint_too(run: RunDirectory) -> None:
    shutil.rmtree(run.checkpoints_path)
    recipe = relocate(read_recipe(run), run.path)
    text = run.recipe_path.read_text()
    run.recipe_path.write_text(text[: len(text) // 2])
    with pytest.raises(RecipeError, match=r"recipe.toml was changed or damaged since the run began"):
        run_sft(recipe, resume=True)  # type: ignore[arg-type]


def test_another_run_s_recipe_is_refused(
    run: RunDirectory, tiny_tokenizer: Path, tiny_conversations: Path
) -> None:
    """Its own checksum is right."""
    other = sft_recipe(tiny_tokenizer, tiny_conversations, run.path.parent / "other", steps=3, batch_size=16)
    shutil.copyfile(run_sft(other).run / "recipe.toml", run.recipe_path)
    with pytest.raises(RecipeError, match="batch_size is 16, was 32"):
        resume(run.path)


def test_an_older_recipe_of_the_run_is_refused(run: RunDirectory) -> None:
    """Its own checksum is right too; a falling rate would follow its end."""
    recipe = relocate(extend(run, ["steps=5"]), run.path)
    run_sft(recipe, resume=True)  # type: ignore[arg-type]
    older = run.path / "recipe.1.toml"
    shutil.copyfile(older, run.recipe_path)
    with pytest.raises(RecipeError, match="steps is 3, was 5"):
        resume(run.path)


def test_trainers_of_checkpoints_that_changed_places_are_refused(run: RunDirectory) -> None:
    one, two = (run.checkpoint_path(step) / "trainer" for step in (2, 3))
    one.rename(run.path / "aside")
    two.rename(one)
    (run.path / "aside").rename(two)
    with pytest.raises(ValueError, match=r"step_3/model.safetensors is damaged"):
        resume(run.path)


def test_folders_of_checkpoints_that_changed_places_are_refused(run: RunDirectory) -> None:
    one, two, aside = run.checkpoint_path(2), run.checkpoint_path(3), run.checkpoints_path / "aside"
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
    with pytest.raises(ValueError, match="is of step 2, and not of step_3; give that folder its name back"):
        resume(run.path)


@pytest.mark.parametrize(
    "name", ["trainer/weights.safetensors", "trainer/next_step.jsonl.gz", "chat_template.jinja"]
)
def test_a_file_that_was_put_into_a_checkpoint_is_refused(run: RunDirectory, name: str) -> None:
    """A resume would read it."""
    (run.checkpoint_path(3) / name).write_bytes(b"from elsewhere")
    with pytest.raises(ValueError, match=rf"{name} is no part of the checkpoint"):
        resume(run.path)


def test_notes_beside_the_weights_do_not_matter(run: RunDirectory) -> None:
    for name in ("README.md", ".DS_Store", "curves.png"):
        (run.checkpoint_path(3) / name).write_bytes(b"looked at")
    assert resume(run.path).warnings == []


def test_a_checkpoint_without_its_manifest_is_refused(run: RunDirectory) -> None:
    (run.checkpoint_path(3) / "trainer/manifest.json").unlink()
    with pytest.raises(ValueError, match=r"manifest.json is gone; step 2 is whole"):
        resume(run.path)
    go_back(run, 2)
    assert resume(run.path).progress["step"] == 2


@pytest.mark.parametrize("damage", ["cut", "step", "weights"])
def test_the_end_of_a_finished_run_is_looked_at_too(run: RunDirectory, damage: str) -> None:
    """`foresail resume` says where the weights are: they must be there."""
    newest = run.checkpoint_path(3)
    assert finished_checkpoint(run, read_recipe(run)) == newest
    progress = newest / "trainer/progress.json"
    if damage == "cut":
        progress.write_bytes(progress.read_bytes()[:20])
    elif damage == "step":
        edit(progress, '"updates": 3', '"updates": 4')
    else:
        (newest / "model.safetensors").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"step_3/.* is damaged: .*step 2 is whole: foresail resume .*--from-step 2"
    ):
        finished_checkpoint(run, read_recipe(run))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (".lock", r"\.lock is no file; remove it"),
        ("error.txt", r"error\.txt: Is a directory; a folder stands where a file is needed; move it away"),
        ("timeline.jsonl", r"timeline\.jsonl is a link to .*elsewhere, which is gone"),
        (
            "recipe.toml",
            r"recipe\.toml does not exist; give the path.*\n.*copy .*step_3/trainer/recipe.toml to",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(run: RunDirectory, name: str, told: str) -> None:
    (run.path / name).unlink(missing_ok=True)
    if name == "error.txt":
        (run.path / name).mkdir()
    else:
        (run.path / name).symlink_to(run.path / "elsewhere")
    with pytest.raises((ValueError, OSError), match=told):
        run_sft(relocate(read_recipe(run), run.path).model_copy(update={"steps": 4}), resume=True)  # type: ignore[arg-type]
