"""The ends of two runs of one recipe, which are to be equal: checkpoints bit for bit, logs but for the times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress

TIMES = ("timing_s/", "perf/throughput", "rollout/tokens_per_second")
LATER = ("rollout/groups_surplus", "rollout/groups_cancelled")  # what else was under way when a step closed


def assert_same_end(run: Path, expected: Path) -> None:
    """The newest checkpoints and the whole logs are equal."""
    found, wanted = RunDirectory(run), RunDirectory(expected)
    assert found.checkpoint_steps() == wanted.checkpoint_steps()
    step = wanted.checkpoint_steps()[-1]
    ours, theirs = found.checkpoint_path(step), wanted.checkpoint_path(step)
    for file in ("model.safetensors", "trainer/optimizer.safetensors"):
        one, other = load_file(ours / file), load_file(theirs / file)
        assert one.keys() == other.keys() and len(one) > 10
        assert all(same_bits(one[name], other[name]) for name in one), file
    assert read_progress(ours) == read_progress(theirs)
    assert without_times(found.read_metrics()) == without_times(wanted.read_metrics())
    assert found.rollout_steps() == wanted.rollout_steps()
    for step in wanted.rollout_steps():
        assert found.rollout_path(step).read_bytes() == wanted.rollout_path(step).read_bytes()
    assert not list(run.rglob(".tmp-*")) and not list(run.rglob(".old-*"))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.numpy().tobytes() == other.numpy().tobytes()


def without_times(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if not name.startswith((*TIMES, *LATER))}
        for record in metrics
    ]


def last_step(run: Path) -> int:
    metrics = RunDirectory(run).read_metrics()
    return metrics[-1]["step"] if metrics else 0


def contents(checkpoint: Path) -> dict[str, Any]:
    """Every file, of tensors their bits: the order of a safetensors file's metadata is by chance.

    Not the run's name and the length of its log, which has times in it, and not the checksums of these.
    """
    found: dict[str, Any] = {}
    for path in sorted(path for path in checkpoint.rglob("*") if path.is_file()):
        name = str(path.relative_to(checkpoint))
        if path.suffix == ".safetensors":
            found[name] = {key: tensor.numpy(force=True).tobytes() for key, tensor in tensors(path).items()}
        elif path.name not in ("manifest.json", "recipe.toml", "log.json"):
            found[name] = path.read_bytes()
    return found


def tensors(path: Path) -> dict[str, torch.Tensor]:
    return {
        name: tensor.view(torch.uint8) if tensor.ndim else tensor for name, tensor in load_file(path).items()
    }
