"""The [lora] table: what it takes, what it refuses, and what it saves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from foresail.model.hf import build_model
from foresail.model.lora import attach
from foresail.recipe.reading.describe import describe
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.projections import count_adapters, projection_sizes, projections_of
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.train.optim.optimizer import build_optimizer

SHAPE = ModelShape(
    vocab_size=300, hidden_size=64, intermediate_size=160, num_layers=3, num_heads=8, num_kv_heads=2, head_dim=16,
    max_context=64,
)  # fmt: skip


def sft(*, lora: parts.Lora | None, path: str = "m") -> Sft:
    model = parts.Model(path=path, dtype="bfloat16")
    return Sft(model=model, data="d", steps=1, max_length=32, micro_batch_tokens=128, lora=lora)


def write(folder: Path, text: str) -> Path:
    (folder / "r.toml").write_text(f'stage = "sft"\ndata = "d"\nsteps = 1\n[model]\npath = "m"\n{text}')
    return folder / "r.toml"


def test_targets_are_single_projections_or_groups_of_them() -> None:
    assert projections_of(("mlp", "q")) == ("q", "gate", "up", "down")
    assert projections_of(("attention", "mlp")) == tuple(projection_sizes(SHAPE))


def test_it_is_off_unless_the_table_is_there(tmp_path: Path) -> None:
    assert load_recipe(write(tmp_path, "")).lora is None
    found = load_recipe(write(tmp_path, "[lora]\n")).lora
    assert found == parts.Lora() and found.targets == ("attention", "mlp")
    assert load_recipe(write(tmp_path, "[lora]\n"), ["lora=none"]).lora is None
    assert load_recipe(write(tmp_path, ""), ['lora.targets=["q", "v"]']).lora == parts.Lora(
        targets=("q", "v")
    )


def test_a_dumped_recipe_reads_back(tmp_path: Path) -> None:
    recipe = sft(lora=parts.Lora(rank=3, targets=("q", "mlp")))
    (tmp_path / "r.toml").write_text(to_toml(recipe))
    assert load_recipe(tmp_path / "r.toml") == recipe


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('targets = ["gatte"]', r'unknown target "gatte"; did you mean gate\?'),
        ('targets = ["q_proj"]', r'unknown target "q_proj"; did you mean q\?'),
        ('targets = ["everything"]', "use some of attention, mlp, q, k, v, o, gate, up, down"),
        ("targets = []", "nothing would be trained"),
        ("rank = 0", "lora.rank must be greater than 0"),
        ("lora_alpha = 3", "it is lora.alpha here"),
    ],
)
def test_mistakes_say_what_to_do(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        load_recipe(write(tmp_path, f"[lora]\n{text}\n"))


@pytest.mark.parametrize("targets", [("attention", "mlp"), ("q", "v"), ("k", "up", "down")])
def test_memory_is_that_of_the_pairs(targets: tuple[str, ...]) -> None:
    lora = parts.Lora(rank=5, targets=targets)
    model = build_model(SHAPE, seed=0, dtype=torch.bfloat16)
    attach(model, lora, seed=0)
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    numbers = sum(weight.numel() for weight in learning)
    assert count_adapters(SHAPE, lora.rank, lora.targets) == numbers

    found, full = (sft(lora=one).estimate_memory(SHAPE, "cpu") for one in (lora, None))
    assert found.weights == sum(weight.numel() * 2 for weight in model.parameters())
    assert found.gradients == 4 * numbers < full.gradients / 5
    optimizer = build_optimizer(model, parts.Optimizer())
    for weight in learning:
        weight.grad = None
    sum(weight.float().sum() for weight in learning).backward()
    optimizer.update(1e-3)
    states = [tensor for name, tensor in optimizer.state().items() if not name.startswith("step:")]
    assert found.optimizer == sum(tensor.numel() * tensor.element_size() for tensor in states)


def test_the_preflight_refuses_a_rank_without_room_and_doubts_a_small_rate(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = sft(lora=parts.Lora(rank=13), path=str(tiny_checkpoint))
    recipe = recipe.model_copy(update={"optimizer": parts.Optimizer(lr=1e-6)})
    found = preflight(recipe)
    assert any("lora.rank 13 exceeds the smaller side of k, which is 12" in line for line in found.refusals)
    assert any("LoRA adapters take about ten times as much: try 1e-05" in line for line in found.warnings)
    assert "M more are trained, in adapters of rank 13 of q, k, v, o, gate, up, down" in describe(found)
    fine = preflight(sft(lora=parts.Lora(rank=13, targets=("q", "mlp")), path=str(tiny_checkpoint)))
    assert not any("lora" in line for line in (*fine.refusals, *fine.warnings))
