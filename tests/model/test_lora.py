"""Low-rank pairs against transformers with merged weights, against the chain rule, and against their own files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_models import packed_logits, random_ids, random_model
from torch import Tensor
from transformers import AutoModelForCausalLM

from foresail.model.adapters import Adapters
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model, save_model
from foresail.model.linear import batch_invariant
from foresail.model.lora import add_pairs, base_of
from foresail.recipe.tables.parts import Lora

FAMILIES = ("llama", "llama wide heads", "qwen2", "qwen3 tied")
TARGETS = (("attention", "mlp"), ("q", "v"), ("k", "o", "up"), ("down",))
RANK, ALPHA = 3, 5.0
IDS = [random_ids(9), random_ids(14, seed=1)]


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Decoder:
    return load_model(folder, dtype=dtype, device="cpu")


def adapt(model: Decoder, targets: tuple[str, ...] = TARGETS[0], rank: int = RANK) -> Adapters:
    return Adapters(model, Lora(rank=rank, alpha=ALPHA, targets=targets), base="base", seed=4)


def tensors_of(adapters: Adapters) -> list[tuple[str, torch.Tensor]]:
    """Every A and B, in place, by PEFT's name for it."""
    return [(name, weight[rows.start : rows.stop]) for name, (weight, rows, _) in adapters.places().items()]


@torch.no_grad()
def learn(adapters: Adapters, seed: int = 0) -> None:
    """B as if it had been trained, and A a little further."""
    generator = torch.Generator().manual_seed(seed)
    for _, tensor in tensors_of(adapters):
        tensor.add_(torch.randn(tensor.shape, generator=generator) * 0.3)


@pytest.fixture(scope="module", params=FAMILIES)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    random_model(request.param).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    random_model("llama").save_pretrained(folder)
    return folder


def merge_by_hand(folder: Path, adapters: Adapters) -> torch.nn.Module:
    """transformers' model with scale B A added to each of its own matrices."""
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    add_pairs_by_hand(theirs, dict(tensors_of(adapters)))
    return theirs


@torch.no_grad()
def add_pairs_by_hand(theirs: torch.nn.Module, tensors: dict[str, Tensor]) -> None:
    for name, a in tensors.items():
        if name.endswith("lora_A.weight"):
            path = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            b = tensors[name.replace("lora_A", "lora_B")]
            theirs.get_parameter(f"{path}.weight").add_(b @ a, alpha=ALPHA / RANK)


# The forward pass.


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("targets", TARGETS)
def test_fresh_pairs_change_no_bit(base: Path, targets: tuple[str, ...], dtype: torch.dtype) -> None:
    model = load(base, dtype)
    before = packed_logits(model, IDS)
    adapters = adapt(model, targets)
    assert torch.equal(packed_logits(model, IDS), before)
    learn(adapters)
    assert not torch.equal(packed_logits(model, IDS), before)


@pytest.mark.parametrize("targets", TARGETS)
def test_logits_are_those_of_transformers_with_merged_weights(base: Path, targets: tuple[str, ...]) -> None:
    model = load(base)
    adapters = adapt(model, targets)
    learn(adapters)
    theirs = merge_by_hand(base, adapters)
    expected = torch.cat([theirs(ids[None]).logits[0] for ids in IDS])
    torch.testing.assert_close(packed_logits(model, IDS), expected, rtol=0, atol=1e-4)
    assert (expected - packed_logits(base_of(model), IDS)).abs().max() > 0.1


def test_a_row_does_not_know_the_rows_beside_it(llama: Path) -> None:
    model = load(llama)
    learn(adapt(model))
    matrix = model.blocks[0].get_submodule("attention.qkv")
    x_MK = torch.randn(7, model.shape.hidden_size, generator=torch.Generator().manual_seed(2))
    with torch.no_grad(), batch_invariant():
        together = matrix(x_MK)
        alone = torch.cat([matrix(row) for row in x_MK.split(1)])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("name", ["qwen3_moe", "ernie4_5_moe"])
def test_beside_experts_attention_has_pairs_and_their_file_is_what_transformers_merges(
    name: str, tmp_path: Path
) -> None:
    """ERNIE's heads are turned in other pairs than ours: the file has its order."""
    random_model(name).save_pretrained(tmp_path / "base")
    model = load(tmp_path / "base")
    adapters = adapt(model, ("attention",))
    learn(adapters)
    (tmp_path / "trainer").mkdir()
    adapters.save(tmp_path / "trainer")
    saved = load_file(tmp_path / "trainer/adapter/adapter_model.safetensors")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    with torch.no_grad():
        add_pairs_by_hand(theirs, saved)
        expected = torch.cat([theirs(ids[None]).logits[0] for ids in IDS])
    torch.testing.assert_close(packed_logits(model, IDS), expected, rtol=0, atol=1e-4)
    again = load(tmp_path / "base")
    adapt(again, ("attention",)).load(tmp_path / "trainer")
    assert torch.equal(packed_logits(again, IDS), packed_logits(model, IDS))
    with pytest.raises(ValueError, match="experts have no low-rank pairs"):
        adapt(load(tmp_path / "base"), ("q", "mlp"))


# What learns.


def test_pairs_alone_learn_by_the_chain_rule(base: Path) -> None:
    """dL/dB = scale dL/dW A^T and dL/dA = scale B^T dL/dW, W being the merged matrix of transformers."""
    model = load(base)
    adapters = adapt(model)
    learn(adapters)
    theirs = merge_by_hand(base, adapters)
    weights = torch.randn(
        sum(map(len, IDS)), model.shape.vocab_size, generator=torch.Generator().manual_seed(0)
    )
    (packed_logits(model, IDS) * weights).sum().backward()
    (torch.cat([theirs(ids[None]).logits[0] for ids in IDS]) * weights).sum().backward()

    learned = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert {name.rpartition(".")[2] for name in learned} == {"A", "B"}
    assert all(weight.grad is None for name, weight in model.named_parameters() if name not in learned)
    tensors = {name: tensor.detach().clone() for name, tensor in tensors_of(adapters)}
    with torch.no_grad():
        for name in learned:
            weight = model.get_parameter(name)
            weight.copy_(weight.grad)  # type: ignore[arg-type]
    for name, found in tensors_of(adapters):
        path, _, kind = name.removeprefix("base_model.model.").rpartition(".lora_")
        slope_NK = theirs.get_parameter(f"{path}.weight").grad
        assert isinstance(slope_NK, Tensor)
        a, b = (tensors[f"base_model.model.{path}.lora_{one}.weight"] for one in "AB")
        expected = (slope_NK @ a.t() if kind == "B.weight" else b.t() @ slope_NK) * (ALPHA / RANK)
        torch.testing.assert_close(
            found.detach(), expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max())
        )


def test_the_base_is_the_same_memory_without_the_pairs(base: Path) -> None:
    model = load(base)
    before = packed_logits(model, IDS)
    learn(adapt(model))
    bare = base_of(model)
    assert torch.equal(packed_logits(bare, IDS), before)
    for name, weight in bare.named_parameters():
        assert weight.data_ptr() == model.get_parameter(name).data_ptr()


# Files.


def test_what_is_saved_is_merged(base: Path, tmp_path: Path) -> None:
    model = load(base)
    learn(adapt(model))
    save_model(model, tmp_path / "merged")
    expected = packed_logits(model, IDS)
    torch.testing.assert_close(packed_logits(load(tmp_path / "merged"), IDS), expected, rtol=0, atol=2e-5)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    found = torch.cat([theirs(ids[None]).logits[0] for ids in IDS])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("rank", "alpha"), [(4, 8.0), (3, 8.0)])  # 8 / 3 has no end in binary digits
def test_merged_bfloat16_weights_are_rounded_once(
    llama: Path, tmp_path: Path, rank: int, alpha: float
) -> None:
    model = load(llama, torch.bfloat16)
    adapters = Adapters(model, Lora(rank=rank, alpha=alpha, targets=("q", "v")), base=None, seed=4)
    learn(adapters)
    save_model(model, tmp_path / "merged")
    before, after = load(llama, torch.bfloat16), load(tmp_path / "merged", torch.bfloat16)
    found, original = (one.get_parameter("blocks.1.attention.qkv.weight").double() for one in (after, before))
    tensors, prefix = dict(tensors_of(adapters)), "base_model.model.model.layers.1.self_attn"
    q, v = (
        tensors[f"{prefix}.{one}_proj.lora_B.weight"].double()
        @ tensors[f"{prefix}.{one}_proj.lora_A.weight"].double()
        for one in "qv"
    )
    kv_width = model.shape.num_kv_heads * model.shape.head_dim
    exact = original + alpha / rank * torch.cat((q, torch.zeros(kv_width, q.shape[1]), v))
    assert torch.equal(found[len(q) : len(q) + kv_width], original[len(q) : len(q) + kv_width])
    assert ((found - exact).abs() <= exact.abs() * 2**-8 * 1.0001).all()


def test_saved_pairs_come_back_bit_for_bit(llama: Path, tmp_path: Path) -> None:
    model = load(llama, torch.bfloat16)
    adapters = adapt(model, ("q", "v", "mlp"))
    learn(adapters)
    adapters.save(tmp_path)
    again = load(llama, torch.bfloat16)
    adapt(again, ("q", "v", "mlp")).load(tmp_path)
    for name, weight in model.named_parameters():
        assert torch.equal(again.get_parameter(name), weight), name


def test_fresh_weights_are_the_same_whether_pairs_are_added_before_or_after(llama: Path) -> None:
    """Ranks add them before the weights have memory."""
    shape = load_model(llama, dtype=torch.float32, device="cpu").shape
    plain = build_model(shape, seed=3)
    arranged = build_model(shape, seed=3, arrange=lambda model: add_pairs(model, Lora(rank=2)))
    weights = dict(arranged.named_parameters())
    assert len(weights) > len(list(plain.parameters()))
    assert all(torch.equal(weight, weights[name]) for name, weight in plain.named_parameters())


def test_pairs_of_other_weights_or_another_rank_are_refused(llama: Path, tmp_path: Path) -> None:
    adapt(load(llama)).save(tmp_path)
    other = load(llama)
    with torch.no_grad():
        other.norm.weight[3] += 1e-6
    with pytest.raises(ValueError, match=r"base is not what .*adapter_model.safetensors was trained beside"):
        adapt(other).load(tmp_path)
    with pytest.raises(ValueError, match=r"other pairs than \[lora\] asks for"):
        adapt(load(llama), rank=2).load(tmp_path)
    with pytest.raises(ValueError, match=r"other pairs than \[lora\] asks for"):
        adapt(load(llama), targets=("q",)).load(tmp_path)
    (tmp_path / "adapter" / "adapter_model.safetensors").write_bytes(b"half")
    with pytest.raises(
        ValueError, match=r"cannot be read .*remove .* to resume from the checkpoint before it"
    ):
        adapt(load(llama)).load(tmp_path)
