"""The memory estimate against bytes counted in torch: weights, optimiser states, saved tensors, caches."""

import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from foresail.engine.build import build_engine
from foresail.model import experts
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.kernels import available
from foresail.model.packed import token_logprobs
from foresail.model.readouts import hidden_states
from foresail.model.shards import corrections_of
from foresail.model.weights import init_weights
from foresail.recipe.estimates.memory import Device, Memory, kv_pages, pages_per_sample
from foresail.recipe.shape.hf_config import SpecialIds, config_from_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.dpo import Dpo
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.preferences import Reference
from foresail.records import PackedBatch
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.policy.critic import Critic

LENGTH, SEQUENCES = 32, 4
TOKENS = LENGTH * SEQUENCES
SMALL = {
    "vocab_size": 300, "hidden_size": 64, "intermediate_size": 160, "num_layers": 3, "num_heads": 8,
    "num_kv_heads": 2, "head_dim": 16, "max_context": 64,
}  # fmt: skip
SHAPES = {
    "llama": SMALL,
    "qwen2": SMALL | {"family": "qwen2", "qkv_bias": True, "tied": False},
    "qwen3": SMALL | {"family": "qwen3", "qk_norm": True, "num_kv_heads": 4},
    "wide": SMALL | {"hidden_size": 128, "intermediate_size": 512, "num_layers": 6},
    "experts": SMALL
    | {
        "family": "ernie4_5_moe",
        "experts": {
            "routed": 12,
            "active": 3,
            "inner_size": 48,
            "shared": 2,
            "correction": True,
            "dense_layers": 1,
        },
    },
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def sft(dtype: Any = "float32", length: int = LENGTH) -> Sft:
    model = parts.Model(path="m", dtype=dtype)
    return Sft(model=model, data="d", steps=1, max_length=length, micro_batch_tokens=length * SEQUENCES)


def rl(**changes: Any) -> Rl:
    base = {
        "model": parts.Model(path="m", dtype="float32"), "data": parts.Problems(source="s"), "steps": 1,
        "max_prompt_tokens": 20, "sampling": parts.Sampling(max_new_tokens=20),
    }  # fmt: skip
    return Rl(**(base | changes))


def build(shape: ModelShape, dtype: str, device: str = "cpu") -> Decoder:
    model = Decoder(shape)
    init_weights(model, seed=0)
    return model.to(device, DTYPES[dtype])


def packed_batch(shape: ModelShape, device: str = "cpu", length: int = LENGTH) -> PackedBatch:
    """A full micro-batch of equal sequences, a loss on all tokens that can have one."""
    places_T = torch.arange(length * SEQUENCES)
    targets_M = places_T[places_T % length > 0]
    return PackedBatch(
        ids_T=(places_T * 7 % shape.vocab_size).to(device),
        positions_T=(places_T % length).to(device),
        starts_S1=torch.arange(0, length * SEQUENCES + 1, length).to(device),
        targets_M=targets_M.to(device),
        sources_M=targets_M.to(device) - 1,
        sequence_M=(targets_M // length).to(device),
        weights_M=torch.ones(len(targets_M), device=device),
    )


def storage_bytes(tensors: list[Tensor]) -> int:
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


class PeakBytes(TorchDispatchMode):
    """The most bytes that tensors made inside this block held at one time."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.seen: dict[int, weakref.finalize] = {}
        for weight in model.parameters():  # a view of one is not made here
            self.track(weight.untyped_storage())
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.track(tensor.untyped_storage())
        return result

    def track(self, storage: torch.UntypedStorage) -> None:
        if (known := self.seen.get(storage._cdata)) is not None and known.alive:
            return
        size = storage.nbytes()
        self.seen[storage._cdata] = weakref.finalize(storage, self.release, size)
        self.now += size
        self.peak = max(self.peak, self.now)

    def release(self, size: int) -> None:
        self.now -= size


def saved_bytes(model: Decoder, forward: Callable[[], Tensor]) -> int:
    """Bytes that are held after a forward pass for the backward pass, its result among them."""
    with PeakBytes(model) as bytes_:
        result = forward()
        gc.collect()
    assert result.requires_grad
    return bytes_.now


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", SHAPES)
def test_weights_gradients_and_optimizer_are_exact(name: str, dtype: str) -> None:
    """But for routers' corrections, of which there are a few, in float32 and without a gradient."""
    shape = ModelShape(**SHAPES[name])
    model, batch = build(shape, dtype), packed_batch(shape)
    reckoned = sft(dtype).estimate_memory(shape, "cpu")
    corrections = {id(one) for one in corrections_of(model)}
    few = sum(one.numel() for one in model.parameters() if id(one) in corrections)
    weights = [one for one in model.parameters() if id(one) not in corrections]
    assert reckoned.weights == storage_bytes(weights) + few * DTYPES[dtype].itemsize

    optimizer = MasterAdamW(model, parts.Optimizer())
    token_logprobs(model, batch)[0].sum().backward()
    found = [optimizer.gradients[number] for number in range(len(optimizer.weights))]
    assert reckoned.gradients == storage_bytes([one for one in found if one is not None]) + 4 * few

    optimizer.update(1e-3)
    state = [tensor for key, tensor in optimizer.state().items() if not key.startswith("step:")]
    assert reckoned.optimizer == storage_bytes(state) + few * (8 if dtype == "float32" else 12)
    assert sft(dtype).measure_checkpoint(shape, "cpu").whole == reckoned.weights + reckoned.optimizer


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", SHAPES)
def test_activations_are_what_autograd_saves(name: str, dtype: str) -> None:
    check_activations(ModelShape(**SHAPES[name]), dtype, "cpu", tolerance=0.05)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", SHAPES)
def test_activations_are_what_autograd_saves_on_cuda(name: str) -> None:
    check_activations(ModelShape(**SHAPES[name]), "bfloat16", "cuda", tolerance=0.05)


def check_activations(shape: ModelShape, dtype: str, device: Device, tolerance: float) -> None:
    model, batch = build(shape, dtype, device), packed_batch(shape, device)
    attend = PackedAttention(batch.starts_S1)
    saved = saved_bytes(model, lambda: model(batch.ids_T, batch.positions_T, attend, hidden_states).value)
    assert sft(dtype).estimate_memory(shape, device).activations == pytest.approx(saved, rel=tolerance)


class FlashStandIn(torch.autograd.Function):
    """Keeps what PyTorch's flash attention keeps, and computes nothing."""

    @staticmethod
    def forward(ctx: Any, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        out_THd, log_sums_HT = q_THd.new_zeros(q_THd.shape), torch.zeros(q_THd.shape[1], len(q_THd))
        ctx.save_for_backward(q_THd, k_TKd, v_TKd, out_THd, log_sums_HT)
        return out_THd


class GroupedStandIn(torch.autograd.Function):
    """Keeps what PyTorch's grouped product keeps of its rows, and computes nothing."""

    @staticmethod
    def forward(ctx: Any, x_PK: Tensor, weight_ENK: Tensor, ends_E: Tensor) -> Tensor:
        ctx.save_for_backward(x_PK, weight_ENK)
        return x_PK.new_zeros(len(x_PK), weight_ENK.shape[1])


def attend_like_flash(layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
    return FlashStandIn.apply(q_THd, k_TKd, v_TKd)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device shows it without stand-ins")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", SHAPES)
def test_activations_are_what_the_fused_kernels_save(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton_interpreter", reason="its interpreter runs the kernels")
    monkeypatch.setattr(available, "can_fuse", lambda tensor: True)
    monkeypatch.setattr(experts, "grouped_linear", GroupedStandIn.apply)
    shape = ModelShape(**SHAPES[name])
    # few tokens: bytes are counted, and the interpreter takes its time for each
    model, batch = build(shape, dtype), packed_batch(shape, length=2)
    saved = saved_bytes(
        model, lambda: model(batch.ids_T, batch.positions_T, attend_like_flash, hidden_states).value
    )
    if dtype != "float32":  # routers' matrices in float32, which are nothing beside the tokens of a real pass
        saved -= sum(4 * one.numel() for name, one in model.named_parameters() if "router.weight" in name)
    assert sft(dtype, length=2).estimate_memory(shape, "cuda").activations == pytest.approx(saved, rel=0.001)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logits_are_the_peak_over_the_vocabulary(temperature: float) -> None:
    # A vocabulary so large that all else is small beside it.
    shape = ModelShape(**(SMALL | {"vocab_size": 20_000, "num_layers": 1}))
    model, batch = build(shape, "float32"), packed_batch(shape)
    recipe = rl(
        sampling=parts.Sampling(max_new_tokens=12, temperature=temperature), micro_batch_tokens=TOKENS
    )
    reckoned = recipe.estimate_memory(shape, "cpu")
    with PeakBytes(model) as forward:
        token_logprobs(model, batch, temperature)
    assert reckoned.logits + reckoned.activations == pytest.approx(forward.peak, rel=0.1)

    with PeakBytes(model) as both:
        token_logprobs(model, batch, temperature)[0].sum().backward()
    assert both.peak <= reckoned.logits + reckoned.activations + reckoned.gradients


@pytest.mark.parametrize("kv_tokens", [None, 100])
@pytest.mark.parametrize("samples_per_prompt", [2, 8])
def test_kv_cache_is_what_the_engine_allocates(kv_tokens: int | None, samples_per_prompt: int) -> None:
    shape = ModelShape(**SMALL)
    engine_part = parts.Engine(max_running=5, page_size=8, kv_tokens=kv_tokens)
    recipe = rl(engine=engine_part, prompts_per_step=2, samples_per_prompt=samples_per_prompt)
    engine = build_engine(build(shape, "float32"), recipe.engine_settings, max_length=recipe.max_length)
    cache = engine.runner.cache
    assert recipe.estimate_memory(shape, "cpu").kv_cache == storage_bytes([cache.keys, cache.values])
    if kv_tokens is None:
        # 40 tokens are 5 pages of 8, and one to copy to; 2 x 2 samples never need the fifth row
        assert engine.num_pages == 6 * min(5, 2 * samples_per_prompt)


def test_recorded_experts_are_counted_with_the_cache() -> None:
    shape = ModelShape(**SHAPES["experts"])
    recipe = rl(engine=parts.Engine(max_running=5, page_size=8, replay_routing=True))
    engine = build_engine(build(shape, "float32"), recipe.engine_settings, max_length=recipe.max_length)
    cache = engine.runner.cache
    held = storage_bytes([cache.keys, cache.values, cache.routes.experts])
    assert recipe.estimate_memory(shape, "cpu").kv_cache == held


def test_pages_round_up() -> None:
    # 40 tokens in pages of 16 are 3 pages, and one for the copy of a shared one.
    assert pages_per_sample(16, 40) == 4
    assert kv_pages(parts.Engine(kv_tokens=47), 40) == 2


def test_reference_costs_only_when_the_loss_pulls_towards_it() -> None:
    shape = ModelShape(**SMALL)
    plain, pulled = rl(), rl(loss=Loss(kl_weight=0.1))
    assert plain.estimate_memory(shape, "cpu").reference == 0
    assert pulled.estimate_memory(shape, "cpu").reference == plain.estimate_memory(shape, "cpu").weights


def test_a_reference_has_no_mtp_layers() -> None:
    shape = ModelShape(**SMALL)
    dpo = Dpo(
        model=parts.Model(path="m", dtype="float32"), data="d", steps=1, reference=Reference(kept=False)
    )
    for recipe in (rl(loss=Loss(kl_weight=0.1)), dpo):
        layers = recipe.estimate_memory(shape.model_copy(update={"mtp": 2}), "cpu")
        assert layers.reference == recipe.estimate_memory(shape, "cpu").weights < layers.weights


def test_sft_has_no_cache_and_auto_follows_the_device() -> None:
    shape, recipe = ModelShape(**SMALL), sft("auto")
    on_cpu, on_cuda = recipe.estimate_memory(shape, "cpu"), recipe.estimate_memory(shape, "cuda")
    assert on_cpu.kv_cache == on_cuda.kv_cache == 0
    assert on_cpu.weights == 4 * shape.num_parameters and on_cuda.weights == 2 * shape.num_parameters


def test_total_is_the_sum_of_all_parts() -> None:
    memory = Memory(
        weights=1, gradients=2, optimizer=4, activations=8, logits=16, kv_cache=32, reference=64, critic=128
    )
    assert (memory.total, memory.standing) == (255, 231)


# The critic.


def ppo(**critic: Any) -> dict[str, Any]:
    return {"advantage": parts.Advantage(kind="gae"), "critic": parts.Critic(**critic)}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["model", "head"])
@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_a_critic_is_its_weights_and_its_optimizer(name: str, kind: str, dtype: Any) -> None:
    shape = ModelShape(**SHAPES[name])
    trunk = shape.model_copy(update={"tied": True})
    critic = Critic(build(trunk, dtype), parts.Critic(kind=kind))  # type: ignore[arg-type]
    critic.model(packed_batch(shape)).value.sum().backward()
    optimizer = critic.learner.optimizer
    assert optimizer is not None
    optimizer.update(1e-3)
    state = [tensor for key, tensor in optimizer.state().items() if not key.startswith("step:")]
    held = storage_bytes([*critic.model.parameters(), *state])
    recipe = rl(model=parts.Model(path="m", dtype=dtype), **ppo(kind=kind))
    assert recipe.estimate_memory(shape, "cpu").critic == held
    assert rl().estimate_memory(shape, "cpu").critic == 0


def test_of_policy_and_critic_the_larger_ones_gradients_and_activations_count(tmp_path: Path) -> None:
    small, large = ModelShape(**SHAPES["llama"]), ModelShape(**SHAPES["wide"])
    alone, beside = rl().estimate_memory(small, "cpu"), rl().estimate_memory(large, "cpu")
    config = config_from_shape(large, dtype="float32", special=SpecialIds())
    (tmp_path / "config.json").write_text(json.dumps(config))
    both = rl(**ppo(path=str(tmp_path))).estimate_memory(small, "cpu")
    assert (both.gradients, both.activations) == (beside.gradients, beside.activations)
    assert (both.weights, both.optimizer, both.logits) == (alone.weights, alone.optimizer, alone.logits)
    head = rl(**ppo(kind="head")).estimate_memory(small, "cpu")
    assert (head.gradients, head.activations) == (alone.gradients, alone.activations)


def test_ranks_have_a_share_of_the_weights_on_gpus_and_a_micro_batch_each_on_a_cpu() -> None:
    shape, four = ModelShape(**SHAPES["wide"]), Cluster(ranks=4)
    model = parts.Model(path="m", dtype="float32")
    alone = rl(model=model).estimate_memory(shape, "cuda")
    shared = rl(model=model, cluster=four).estimate_memory(shape, "cuda")
    for name in ("gradients", "optimizer"):
        assert getattr(shared, name) == getattr(alone, name) / 4
    assert shared.weights == alone.weights / 4
    assert shared.engine_weights == alone.weights, "the first has a copy for its engine"
    assert shared.total > shared.engine_weights + shared.weights
    assert (shared.activations, shared.kv_cache) == (alone.activations, alone.kv_cache)
    host, many = sft().estimate_memory(shape, "cpu"), sft().model_copy(update={"cluster": four})
    assert many.estimate_memory(shape, "cpu").weights == host.weights
    assert many.estimate_memory(shape, "cpu").activations == 4 * host.activations


def test_ranks_that_share_a_batch_hold_a_slice_of_what_it_keeps() -> None:
    shape, two = ModelShape(**SHAPES["wide"]), Cluster(ranks=2, context=2)
    whole = rl(micro_batch_tokens=1024).estimate_memory(shape, "cuda")
    sliced = rl(micro_batch_tokens=512, cluster=two).estimate_memory(shape, "cuda")
    assert sliced.activations == whole.activations / 2


def test_a_checkpoint_of_ranks_is_as_large_as_any() -> None:
    shape = ModelShape(**SHAPES["wide"])
    recipes = rl(), rl(cluster=Cluster(ranks=4)), rl(cluster=Cluster(ranks=4, context=4))
    assert len({recipe.measure_checkpoint(shape, "cuda") for recipe in recipes}) == 1
