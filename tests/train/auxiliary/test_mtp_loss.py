"""The loss of MTP layers: what it is, whom it teaches, and that packing changes nothing."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from grouped_sequences import grouped_sequences
from small_training import SHAPE, TOLERANCE, Keeper, small_model, small_sequences
from torch import Tensor

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.mtp import MtpHeads
from foresail.model.readouts import logits
from foresail.recipe.tables.parts import Mtp
from foresail.records import TrainSequence
from foresail.train.auxiliary.mtp import MtpLoss, choose_trained, mtp_at
from foresail.train.learner import Learner
from foresail.train.update.step import token_loss, train_step

WITH_MTP = SHAPE.model_copy(update={"mtp": 2})
HALF = MtpLoss(weight=0.5)


def plain_loss(model: Decoder, sequence: TrainSequence, weight: float) -> tuple[Tensor, list[Tensor]]:
    """By the definition, one sequence at a time: the decoder's loss, and each MTP layer's."""
    ids_T = torch.tensor(sequence.ids)
    positions_T, attend = torch.arange(len(ids_T)), PackedAttention(torch.tensor([0, len(ids_T)]))

    def ahead(stream_TD: Tensor, heads: MtpHeads) -> list[Tensor]:
        found = []
        for number in range(len(heads)):
            stream_TD, normed_TD = heads.run(number, stream_TD, ids_T.roll(-number - 1), positions_T, attend)
            found.append(heads.read(normed_TD, logits))
        return found

    output = model(ids_T, positions_T, attend, logits, ahead=ahead)
    losses = []
    for depth, logits_TV in enumerate([output.value, *output.ahead], start=1):
        targets = [place for place in range(depth, len(ids_T)) if sequence.loss_mask[place]]
        logprobs = logits_TV.log_softmax(-1)
        losses.append(-weight * sum(logprobs[place - depth, ids_T[place]] for place in targets))
    return losses[0], losses[1:]


def run(
    sequences: list[TrainSequence],
    *,
    mtp: MtpLoss | None = HALF,
    max_tokens: int = 1000,
    share_from: float | None = None,
    recompute: bool = False,
    settings: Mtp | None = None,
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Metrics, and the gradient by name."""
    model = small_model(shape=WITH_MTP)
    choose_trained(model, settings or Mtp())
    if recompute:
        model.recompute_blocks()
    batches = pack(sequences, [0.1] * len(sequences), max_tokens=max_tokens, share_from=share_from)
    keeper = Keeper(model)
    learner = Learner(name="policy", model=model, optimizer=keeper)
    found = train_step(learner, batches, partial(token_loss, loss=sft_loss, mtp=mtp), learning_rate=1.0)
    names = [name for name in keeper.names if name not in untouched(model, mtp)]
    return found, dict(zip(names, keeper.kept, strict=True))


def untouched(model: Decoder, mtp: MtpLoss | None) -> set[str]:
    """Weights that no loss looks at."""
    return {name for name, _ in model.named_parameters() if mtp is None and name.startswith("mtp.")}


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], atol=TOLERANCE, rtol=1e-3, msg=name)


def test_it_is_the_mean_of_the_layers_losses_beside_the_main_one() -> None:
    model, sequences = small_model(shape=WITH_MTP), small_sequences()
    pairs = [plain_loss(model, sequence, 0.1) for sequence in sequences]
    main = sum(first for first, _ in pairs)
    layers = [sum(further[number] for _, further in pairs) for number in range(2)]
    found, gradients = run(sequences)
    assert found["loss"] == pytest.approx((main + 0.25 * (layers[0] + layers[1])).item(), rel=1e-5)
    num_tokens = sum(sum(sequence.loss_mask) for sequence in sequences)
    for number, layer in enumerate(layers, start=1):
        assert found[f"mtp/loss_{number}"] == pytest.approx(layer.item() / 0.1 / num_tokens, rel=1e-5)
        assert 0 <= found[f"mtp/top1_{number}"] <= 1
    (main + 0.25 * (layers[0] + layers[1])).backward()
    assert_same(gradients, {name: weight.grad for name, weight in model.named_parameters()})


@pytest.mark.parametrize("changes", [{"max_tokens": 15}, {"recompute": True}])
def test_neither_micro_batches_nor_recomputing_change_it(changes: dict) -> None:
    once, gradients = run(small_sequences())
    other, others = run(small_sequences(), **changes)
    for name in ("loss", "mtp/loss_1", "mtp/loss_2"):
        assert other[name] == pytest.approx(once[name], rel=1e-5)
    assert_same(others, gradients)


def test_a_shared_prompt_is_read_with_each_of_its_answers() -> None:
    """A prompt's last place predicts through the answer's first token, which differs from answer to answer."""
    apart, gradients = run(grouped_sequences())
    together, others = run(grouped_sequences(), share_from=0.0, max_tokens=60)
    for name in ("loss", "mtp/loss_1", "mtp/loss_2"):
        assert together[name] == pytest.approx(apart[name], rel=1e-5)
    assert_same(others, gradients)


def test_detached_it_teaches_the_mtp_layers_alone() -> None:
    _, main = run(small_sequences(), mtp=None)
    _, detached = run(small_sequences(), mtp=MtpLoss(weight=0.5, detach=True))
    _, attached = run(small_sequences())
    assert_same({name: detached[name] for name in main}, main)
    layers = {name: gradient for name, gradient in attached.items() if name.startswith("mtp.")}
    assert_same({name: detached[name] for name in layers}, layers)
    assert all(
        (attached[name] - main[name]).abs().max() > 1e-3
        for name in ("embed.weight", "blocks.0.mlp.down.weight")
    )


@pytest.mark.parametrize(
    ("train", "prefixes"),
    [("mtp", {"mtp.0", "mtp.1"}), ("added", {"mtp.1"}), ("none", {"embed.", "blocks", "norm.w"})],
)
def test_the_recipe_says_what_is_trained(train: str, prefixes: set[str]) -> None:
    settings = Mtp(train=train)
    found, gradients = run(small_sequences(), mtp=mtp_at(settings, 0.0), settings=settings)
    everything, _ = run(small_sequences())
    assert {next((p for p in prefixes if name.startswith(p)), name) for name in gradients} == prefixes
    for name in ("mtp/loss_1", "mtp/loss_2"):
        assert found[name] == pytest.approx(everything[name], rel=1e-5)


def test_frozen_layers_are_measured_and_cost_the_decoder_nothing() -> None:
    plain, main = run(small_sequences(), mtp=None)
    frozen = Mtp(train="none")
    found, gradients = run(small_sequences(), mtp=mtp_at(frozen, 0.0), settings=frozen)
    assert found["loss"] == plain["loss"]
    assert_same(gradients, main)


def test_its_weight_changes_once() -> None:
    settings = Mtp(weight=0.3, final_weight=0.1, change_at=0.4)
    weights = [mtp_at(settings, progress).weight for progress in (0.0, 0.39, 0.4, 1.0)]
    assert weights == [0.3, 0.3, 0.1, 0.1]
    assert mtp_at(Mtp(), 1.0).weight == 0.3
    assert mtp_at(None, 0.5) is None


@pytest.mark.parametrize(("layers", "settings"), [(0, Mtp()), (1, Mtp(train="added"))])
def test_layers_that_are_not_there_cannot_be_trained(layers: int, settings: Mtp) -> None:
    model = small_model(shape=SHAPE.model_copy(update={"mtp": layers}))
    with pytest.raises(ValueError, match=r"foresail mtp (add|extend)"):
        choose_trained(model, settings)
