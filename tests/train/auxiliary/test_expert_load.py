"""Routers' losses and corrections over a run, and the load of its experts in the log."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from small_training import SHAPE, WITH_EXPERTS, Keeper, small_model, small_sequences
from tiny_world import rl_recipe, sft_recipe
from torch import Tensor

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model
from foresail.model.packed import replayed, score_tokens
from foresail.model.router import CHOSEN_EXPERTS, EXPERT_LOAD, RouterLosses, routers_of
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.shape.model_shape import Experts
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Checkpoints, Engine, Lora, Optimizer, Rollout
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.router import Router
from foresail.records import PackedBatch
from foresail.runlog.directory import RunDirectory
from foresail.train.auxiliary.expert_load import ExpertLoad, balance_experts, load_metrics
from foresail.train.learner import Learner
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft
from foresail.train.update.step import token_loss, train_step

ROUTER = Router(balance=0.1, z=0.01, schedule="linear", final_share=0.2, correction_rate=0.03)


def test_coefficients_are_a_function_of_progress_alone() -> None:
    model = small_model(shape=WITH_EXPERTS)
    for progress, left in ((0.0, 1.0), (0.5, 0.6), (1.0, 0.2)):
        balance_experts(model, ROUTER, progress)
        for router in routers_of(model):
            assert router.losses == pytest.approx(RouterLosses(0.1 * left, 0.01 * left))
    cosine, constant = (Router(schedule=kind, final_share=0.2) for kind in ("cosine", "constant"))
    assert [cosine.left(progress) for progress in (0, 0.5, 1)] == pytest.approx([1, 0.6, 0.2])
    assert [constant.left(progress) for progress in (0, 1)] == [1, 1]


def count(model: Decoder, *, max_tokens: int = 1000, rate: float = 0.0) -> Tensor:
    """The load of an update that leaves the weights as they are."""
    load = ExpertLoad(model, rate)
    learner = Learner(name="policy", model=model, optimizer=Keeper(model), expert_load=load)
    batches = pack(small_sequences(), [0.1] * 6, max_tokens=max_tokens)
    train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=0)
    taken = load.take()
    assert taken is not None
    return taken


def test_an_update_counts_every_token_of_every_layer_however_it_is_cut_and_recomputed() -> None:
    plain, recomputed = (small_model(shape=WITH_EXPERTS) for _ in range(2))
    recomputed.recompute_blocks()
    load_LE = count(plain)
    seen: list[Tensor] = []
    hooks = [
        router.register_forward_hook(lambda _, __, choice: seen.append(choice.experts_TA))
        for router in routers_of(plain)
    ]
    count(plain)
    for hook in hooks:
        hook.remove()
    expected = torch.stack([experts_TA.flatten().bincount(minlength=5) for experts_TA in seen])
    assert torch.equal(load_LE.long(), expected)
    assert torch.equal(count(plain, max_tokens=14), load_LE) and torch.equal(count(recomputed), load_LE)


def test_what_is_not_learned_from_is_not_counted() -> None:
    model = small_model(shape=WITH_EXPERTS)
    batch = pack(small_sequences(), [0.1] * 6, max_tokens=1000)[0]
    assert token_loss(model, batch, loss=sft_loss).counts
    with torch.no_grad():
        assert not token_loss(model, batch, loss=sft_loss).counts
    assert not token_loss(small_model(shape=SHAPE), batch, loss=sft_loss).counts


def test_corrections_move_towards_the_mean_and_even_out_the_load() -> None:
    model = small_model(shape=WITH_EXPERTS)
    before = [router.correction.detach().clone() for router in routers_of(model)]
    load_LE = count(model, rate=0.01)
    for router, was_1E, load_E in zip(routers_of(model), before, load_LE, strict=True):
        moved_E = torch.where(load_E < load_E.mean(), 0.01, -0.01) * (load_E != load_E.mean())
        torch.testing.assert_close(router.correction - was_1E, moved_E[None])
    first = load_metrics(load_LE)
    later = [load_metrics(count(model, rate=0.02))["router/load_max_over_mean"] for _ in range(30)]
    assert min(later) < 1.25 and fmean(later[-5:]) < 0.8 * first["router/load_max_over_mean"]


def test_figures_are_those_of_the_worst_layer_of_the_mean_and_of_all_experts() -> None:
    found = load_metrics(torch.tensor([[2.0, 2, 2, 2], [8, 0, 0, 0]]))
    assert found == {
        "router/load_max_over_mean": 4,
        "router/load_max_over_mean_average": 2.5,
        "router/load_entropy": 0.5,
        "router/dead_experts": 3,
        "router/tokens_per_expert": 2,
    }


# Whole runs.


def recipe_with_experts(tokenizer: Path, data: Path, root: Path, **changes: Any) -> Sft:
    dense = sft_recipe(tokenizer, data, root).model
    assert dense.shape is not None
    shape = dense.shape.model_copy(
        update={
            "family": "ernie4_5_moe",
            "experts": Experts(routed=6, active=2, inner_size=16, shared=1, correction=True, dense_layers=1),
        }
    )
    given = {"steps": 4, "router": ROUTER, "checkpoints": Checkpoints(every=2), **changes}
    return sft_recipe(tokenizer, data, root, model=dense.model_copy(update={"shape": shape}), **given)


@pytest.fixture(scope="module")
def run_with_experts(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("experts")
    return run_sft(recipe_with_experts(tiny_tokenizer, tiny_conversations, root)).run


def test_a_run_logs_losses_and_load_by_layer_and_expert(run_with_experts: Path) -> None:
    run = RunDirectory(run_with_experts)
    metrics, loads = run.read_metrics(), run.read_expert_load()
    assert [record["step"] for record in loads] == [1, 2, 3, 4]
    for record, load in zip(metrics, loads, strict=True):
        [row] = load["load"]  # the first of two layers is dense
        assert len(row) == 6 and sum(row) == 2 * record["train/tokens"]
        assert record["router/load_max_over_mean"] == pytest.approx(max(row) * 6 / sum(row))
    # about 1 where loads are even, times the coefficient: 0.8 of 0.1 in the first of four updates, 0.2 in the last
    assert metrics[0]["router/balance_loss"] == pytest.approx(0.08, rel=0.4)
    assert metrics[-1]["router/balance_loss"] == pytest.approx(0.02, rel=0.4)


def test_a_resumed_run_ends_with_the_same_weights_corrections_and_log(
    run_with_experts: Path, tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    recipe = recipe_with_experts(tiny_tokenizer, tiny_conversations, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foresail.train.session.StopRequest", lambda: StopAfter(2))
        assert not run_sft(recipe).finished
    outcome = run_sft(recipe, resume=True)
    theirs = load_model(run_with_experts / "checkpoints/step_4", dtype=torch.float32, device="cpu")
    ours = load_model(outcome.checkpoint, dtype=torch.float32, device="cpu")
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, expected)
    assert any(router.correction.abs().max() > 0.025 for router in routers_of(ours)), "corrections moved"
    assert RunDirectory(outcome.run).read_expert_load() == RunDirectory(run_with_experts).read_expert_load()


class StopAfter:
    """A request to stop that comes after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def requested(self) -> bool:
        self.left -= 1
        return self.left < 0

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": Optimizer(lr=5e-3, states="8bit"), "recompute": True},
        {"lora": Lora(rank=4, targets=("attention",)), "router": None},
    ],
)
def test_small_states_recomputation_and_low_rank_pairs_train_experts(
    changes: dict[str, Any], tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    recipe = recipe_with_experts(tiny_tokenizer, tiny_conversations, tmp_path, steps=10, **changes)
    run = RunDirectory(run_sft(recipe).run)
    metrics = run.read_metrics()
    assert metrics[-1]["train/loss"] < 0.98 * metrics[0]["train/loss"]
    for record, load in zip(metrics, run.read_expert_load(), strict=True):
        assert sum(load["load"][0]) == 2 * record["train/tokens"]


def test_reinforcement_balances_and_logs_experts_too(run_with_experts: Path, tmp_path: Path) -> None:
    recipe = rl_recipe(
        run_with_experts / "checkpoints/step_4",
        tmp_path,
        steps=1,
        updates_per_step=2,
        router=ROUTER,
        dynamic_sampling=DynamicSampling(enabled=False),
    )
    run = RunDirectory(run_rl(recipe).run)
    record, [load] = run.read_metrics()[-1], run.read_expert_load()
    assert record["router/balance_loss"] > 0
    assert sum(load["load"][0]) / 6 == pytest.approx(record["router/tokens_per_expert"]), "of both updates"


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize(("workers", "steps"), [(0, 2), (1, 1)])
def test_the_trainer_routes_by_what_the_engine_recorded(
    workers: int, steps: int, run_with_experts: Path, tmp_path: Path
) -> None:
    """Every micro-batch of the update brings the experts of its tokens, and its counts are of them."""
    recipe = rl_recipe(
        run_with_experts / "checkpoints/step_4",
        tmp_path,
        steps=steps,
        loss=Loss(old_logprobs="trainer", kl_weight=0.1),
        engine=Engine(replay_routing=True),
        rollout=Rollout(workers=workers),
        dynamic_sampling=DynamicSampling(enabled=False),
    )
    replays: list[tuple[bool, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in ("policy_update", "loss"):
            patch.setattr(
                f"foresail.train.policy.{module}.replayed",
                lambda model, batch: replays.append(seen(batch)) or replayed(model, batch),
            )
        run = RunDirectory(run_rl(recipe).run)
    assert len(replays) >= 2 * steps and all(known for known, _ in replays)
    assert {width for _, width in replays} == {2}, "two experts in one layer that has some"
    for record in run.read_metrics()[1:]:
        assert record["rollout/logprob_abs_diff_max"] < 1e-4


def seen(batch: PackedBatch) -> tuple[bool, int]:
    """Whether the experts of every token are known that predicts one with a loss, and how many each has."""
    chosen_TX = batch.side[CHOSEN_EXPERTS]
    return bool((chosen_TX[batch.sources_M] >= 0).all()), chosen_TX.shape[1]


def test_recorded_experts_replace_the_routers_choice_in_loss_and_load() -> None:
    model, sequence = small_model(shape=WITH_EXPERTS), small_sequences()[1]
    rows = [[0, 1, 3, 4]] * len(sequence.ids)
    [plain] = pack([sequence], [0.1], max_tokens=100)
    [batch] = pack([replace(sequence, side={CHOSEN_EXPERTS: rows})], [0.1], max_tokens=100)
    assert replayed(model, plain) is None and replayed(small_model(shape=SHAPE), batch) is None
    found = score_tokens(model, batch, route=replayed(model, batch))
    tokens = len(sequence.ids)
    assert found.counts[EXPERT_LOAD].tolist() == [[tokens, tokens, 0, 0, 0], [0, 0, 0, tokens, tokens]]
    own = score_tokens(model, batch)
    assert not torch.isclose(found.value[0], own.value[0]).any()


# What is refused.


def test_routers_are_balanced_where_there_are_some(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    dense = sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, router=Router())
    assert any("this llama model is dense; remove [router]" in line for line in preflight(dense).refusals)
    with pytest.raises(ValueError, match="is dense; remove"):
        run_sft(dense)
    sparse = recipe_with_experts(tiny_tokenizer, tiny_conversations, tmp_path / "sparse")
    assert not preflight(sparse).refusals
    shape = sparse.model.shape
    assert shape is not None and shape.experts is not None
    plain = shape.experts.model_copy(update={"shared": 0, "correction": False})
    shape = shape.model_copy(update={"family": "qwen3_moe", "qk_norm": True, "experts": plain})
    without = sparse.model_copy(update={"model": sparse.model.model_copy(update={"shape": shape})})
    assert any("qwen3_moe has none" in line for line in preflight(without).refusals)


def test_experts_are_replayed_where_there_are_some(tiny_checkpoint: Path, tmp_path: Path) -> None:
    dense = rl_recipe(tiny_checkpoint, tmp_path, engine=Engine(replay_routing=True))
    assert any("replay_routing is for models with experts" in line for line in preflight(dense).refusals)
    with pytest.raises(ValueError, match=r"engine\.replay_routing needs the native engine"):
        rl_recipe(
            tiny_checkpoint, tmp_path, engine=Engine(replay_routing=True), rollout=Rollout(backend="vllm")
        )


def test_frozen_routers_and_empty_wishes_are_refused(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    make = partial(recipe_with_experts, tiny_tokenizer, tiny_conversations, tmp_path)
    with pytest.raises(ValueError, match=r"with \[lora\] they are frozen"):
        make(lora=Lora(targets=("attention",)))
    with pytest.raises(ValueError, match=r"all 0, so \[router\] does nothing"):
        make(router=Router(balance=0, z=0))
