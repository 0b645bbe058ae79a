"""Export of a run's weights: a 16-bit Hugging Face folder with a model card, and its upload to a hub.

export(Path("runs/rl"), Path("out"), dtype="bfloat16")   # foresail export runs/rl out
push(Path("out"), "owner/name", private=False)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import torch

from foresail.model.hf import load_model
from foresail.recipe.checkpoint_path import trained_checkpoint
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.stage import Stage
from foresail.runlog.atomic import replacing_directory
from foresail.runlog.directory import RunDirectory
from foresail.runlog.key_metrics import held_out, held_out_label
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def export(source: Path, target: Path, *, dtype: str) -> Path:
    """Weights, tokenizer and README.md; the checkpoint they were taken from is returned."""
    if dtype not in DTYPES:
        raise ValueError(f"--dtype {dtype}: use one of {', '.join(DTYPES)}")
    if target.exists():
        raise FileExistsError(f"{target} is already there; remove it, or choose another folder")
    checkpoint = find_checkpoint(source)
    scores = read_shape(checkpoint).scores
    model = load_model(checkpoint, dtype=DTYPES[dtype], device="cpu", scores=scores)
    tokenizer = Tokenizer.load(checkpoint)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_directory(target) as new_folder:
        save_weights(model, tokenizer, new_folder)
        (new_folder / "README.md").write_text(model_card(checkpoint, target.name, dtype), encoding="utf-8")
    return checkpoint


def find_checkpoint(source: Path) -> Path:
    """A checkpoint itself; of a run the best step where one is kept, else the newest."""
    if (source / "config.json").is_file():
        return source.resolve() if source.is_symlink() else source
    return trained_checkpoint(RunDirectory.open(source).path)


def model_card(checkpoint: Path, name: str, dtype: str) -> str:
    return "\n".join(card_lines(checkpoint, name, dtype)) + "\n"


def card_lines(checkpoint: Path, name: str, dtype: str) -> Iterator[str]:
    run = RunDirectory(checkpoint.resolve().parent.parent)
    recipe = read_recipe(run)
    tags = ["foresail"] + (["reinforcement-learning"] if isinstance(recipe, Rl) else [])
    yield from ("---", "library_name: transformers", "pipeline_tag: text-generation")
    yield from ("tags:", *(f"- {tag}" for tag in tags), "---", "", f"# {name}", "")
    yield f"Trained with Foresail {version('foresail')}; the weights are {dtype}."
    if recipe is None:
        return
    step = checkpoint.resolve().name.removeprefix("step_")
    yield from ("", "| | |", "|---|---|")
    yield from (f"| {key} | {value} |" for key, value in facts(recipe, step).items())
    if accuracies := accuracies_at(run, step):
        yield from ("", "## Held-out accuracy", "", "| problems | before | here |", "|---|---|---|")
        yield from (f"| {label} | {before} | {here} |" for label, (before, here) in accuracies.items())
    text = run.recipe_path.read_text(encoding="utf-8").strip()
    yield from ("", "## Recipe", "", "```toml", without_folders(text), "```")


def read_recipe(run: RunDirectory) -> Stage | None:
    """None for a checkpoint that lies in no run, or in one whose recipe no longer loads."""
    try:
        return load_recipe(run.recipe_path)
    except RecipeError:
        return None


def facts(recipe: Stage, step: str) -> dict[str, str]:
    start = (
        "fresh weights" if recipe.model.path is None else without_folders(f'"{recipe.model.path}"').strip('"')
    )
    lines = {"base model": start, "stage": recipe.stage, "step": f"{step} of {recipe.steps}"}
    for key, source in recipe.sources().items():
        lines[key] = without_folders(f'"{source}"').strip('"')
    if isinstance(recipe, Rl):
        lines |= {"advantage": recipe.advantage.kind, "loss": recipe.loss.kind}
    if recipe.lora is not None:
        lines["LoRA"] = f"rank {recipe.lora.rank}, merged"
    return lines


def accuracies_at(run: RunDirectory, step: str) -> dict[str, tuple[str, str]]:
    """The first and the newest held-out accuracies up to a step, by label."""
    first: dict[str, float] = {}
    newest: dict[str, float] = {}
    for record in run.read_metrics():
        if not step.isdecimal() or record["step"] <= int(step):
            accuracies = held_out(record)
            first, newest = accuracies | first, newest | accuracies
    return {held_out_label(name): (f"{first[name]:.3f}", f"{newest[name]:.3f}") for name in newest}


def without_folders(text: str) -> str:
    """Shortens quoted absolute paths to their last name: folders of one machine mean nothing to others."""
    return re.sub(r'"/[^"\n]*/([^"/\n]+)/?"', r'"\1"', text)


def require_hub() -> None:
    try:
        import huggingface_hub  # noqa: F401
    except ImportError as error:
        raise ImportError("--push needs huggingface_hub; pip install huggingface_hub") from error


def push(folder: Path, repository: str, *, private: bool) -> str:
    """Make the repository unless it is there, and upload all files; the address is returned."""
    from huggingface_hub import HfApi

    try:
        address = HfApi().create_repo(repository, private=private, exist_ok=True)
        HfApi().upload_folder(repo_id=repository, folder_path=folder)
    except Exception as error:  # no token, no network, no such owner: each raises another type
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise OSError(
            f"{folder} is written but not pushed to {repository}: {reason}; log in with `hf auth login`, then "
            f"run: hf upload {repository} {folder}"
        ) from error
    return str(address)
