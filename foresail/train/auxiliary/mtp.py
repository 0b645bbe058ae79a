"""The loss of MTP layers, each of which predicts one token further than the layer before.

    mtp = mtp_at(recipe.mtp_settings, progress)                # None where the recipe has no [mtp]
    train_step(policy, batches, partial(token_loss, loss=sft_loss, mtp=mtp), learning_rate=1e-5)

That is all a stage does about it. The loss is weight / D * (CE_1 + … + CE_D) for D layers. A token counts where it
has a loss and what predicts it lies in its own sequence, with its weight in the main loss: micro-batches and ranks
change nothing. Where sequences share a packed prompt, its places are laid out once for each of them, for
what follows the prompt's end differs.

Legend: T tokens, U tokens laid out, S segments, M tokens with a loss, D hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.mtp import MtpHeads
from foresail.model.readouts import likelihood_at, logits_at
from foresail.recipe.tables import parts
from foresail.recipe.tables.mtp import mtp_refusals
from foresail.records import PackedBatch

TOP1_SAMPLE = 256  # tokens of a micro-batch for which top-1 accuracy is measured


@dataclass(frozen=True, kw_only=True)
class MtpLoss:
    """The settings of one update; without `learns` the loss is only measured."""

    weight: float
    learns: bool = True
    detach: bool = False


def mtp_at(settings: parts.Mtp | None, progress: float) -> MtpLoss | None:
    """The settings of an update at `progress` (0 to 1) of the run."""
    if settings is None:
        return None
    weight = settings.weight_at(progress)
    return MtpLoss(weight=weight, learns=settings.train != "none" and weight > 0, detach=settings.detach)


def choose_trained(model: Decoder, settings: parts.Mtp | None) -> None:
    """Freeze what the recipe does not train; before the optimiser is made."""
    for refusal in mtp_refusals(settings, model.shape):
        raise ValueError(refusal)
    if settings is not None and settings.freezes_model:
        model.requires_grad_(False)
        trained: nn.ModuleList = model.mtp if settings.train == "mtp" else model.mtp[1:]
        trained.requires_grad_(True)
    elif settings is None or settings.train == "none":
        model.mtp.requires_grad_(False)


def read_ahead(
    stream_TD: Tensor, heads: MtpHeads, batch: PackedBatch, settings: MtpLoss, temperature: float
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
    """The loss with its weight, each layer's own as a sum over tokens, no further losses, and statistics.

    `mtp/loss_k` becomes a mean over all tokens with a loss, to which the first k of a sequence without a prompt add
    none. `mtp/top1_k`: how often the likeliest token is the right one, among some tokens of each micro-batch.
    """
    layout = lay_out(batch)
    if settings.detach:
        stream_TD, heads = stream_TD.detach(), heads.detached()
    with torch.set_grad_enabled(torch.is_grad_enabled() and settings.learns):
        stream_UD = stream_TD if layout.places_U is None else stream_TD[layout.places_U]
        total, terms, statistics = stream_TD.new_zeros(()), {}, {}
        for number in range(len(heads)):
            ids_U = layout.ids_U.roll(-number - 1)  # wrong at a sequence's end, where nothing is read
            stream_UD, normed_UD = heads.run(number, stream_UD, ids_U, layout.positions_U, layout.attend)
            sources_M, counts_M = layout.sources(number + 1)
            ids_M = layout.ids_U[layout.targets_M]
            logprobs_M, _ = heads.read(normed_UD, likelihood_at(sources_M, ids_M, temperature))
            total = total - (batch.weights_M * counts_M * logprobs_M).sum()
            terms[f"mtp/loss_{number + 1}"] = -(counts_M * logprobs_M).detach().sum()
            some = slice(None, None, max(1, len(sources_M) // TOP1_SAMPLE))
            statistics[f"mtp/top1_{number + 1}"] = share_right(
                normed_UD, heads, sources_M[some], ids_M[some], counts_M[some]
            )
    loss = settings.weight / len(heads) * total if settings.learns else total.new_zeros(())
    return loss, terms, {}, statistics


@torch.no_grad()
def share_right(
    normed_UD: Tensor, heads: MtpHeads, sources_M: Tensor, ids_M: Tensor, counts_M: Tensor
) -> Tensor:
    """How often the likeliest token is the right one."""
    right_M = heads.read(normed_UD, logits_at(sources_M)).argmax(1) == ids_M
    return (right_M * counts_M).sum() / counts_M.sum().clamp(min=1)


@dataclass(frozen=True, kw_only=True)
class SequenceLayout:
    """Sequences end to end, each with its own copy of the prompt: the places of their tokens in the batch (None:
    the same order), and which of them have a loss.
    """

    ids_U: Tensor
    positions_U: Tensor
    places_U: Tensor | None
    attend: PackedAttention
    targets_M: Tensor
    firsts_M: Tensor  # where the target's sequence begins

    def sources(self, depth: int) -> tuple[Tensor, Tensor]:
        """What layer `depth` predicts the targets from, and 1 where that is in the same sequence, else 0."""
        sources_M = self.targets_M - 1 - depth
        return sources_M.maximum(self.firsts_M), (sources_M >= self.firsts_M).float()


def lay_out(batch: PackedBatch) -> SequenceLayout:
    """Prompt a with answers b, c -> a b, a c."""
    starts_S1, device = batch.starts_S1.cpu(), batch.ids_T.device
    if (parents_S := batch.parents_S) is None:
        firsts_S = starts_S1[:-1].to(device)
        return SequenceLayout(
            ids_U=batch.ids_T,
            positions_U=batch.positions_T,
            places_U=None,
            attend=PackedAttention(batch.starts_S1),
            targets_M=batch.targets_M,
            firsts_M=firsts_S[batch.sequence_M],
        )
    parents_S = parents_S.cpu()
    lengths_S, is_prompt_S = starts_S1.diff(), torch.zeros(len(parents_S), dtype=torch.bool)
    is_prompt_S[parents_S[parents_S >= 0]] = True
    before_S = torch.where(parents_S >= 0, lengths_S[parents_S], 0)
    whole_S = torch.where(is_prompt_S, 0, before_S + lengths_S)  # a shared prompt by itself is no sequence
    ends_S = whole_S.cumsum(0)
    firsts_S = ends_S - whole_S
    segment_U = torch.repeat_interleave(torch.arange(len(whole_S)), whole_S)
    within_U = torch.arange(int(ends_S[-1])) - firsts_S[segment_U]
    own_U = starts_S1[segment_U] + within_U - before_S[segment_U]
    places_U = torch.where(
        within_U < before_S[segment_U], starts_S1[parents_S[segment_U]] + within_U, own_U
    ).to(device)
    shifts_S = (firsts_S + before_S - starts_S1[:-1]).to(device)
    return SequenceLayout(
        ids_U=batch.ids_T[places_U],
        positions_U=batch.positions_T[places_U],
        places_U=places_U,
        attend=PackedAttention(torch.cat((torch.zeros(1, dtype=torch.int64), ends_S[~is_prompt_S]))),
        targets_M=batch.targets_M + shifts_S[batch.sequence_M],
        firsts_M=firsts_S.to(device)[batch.sequence_M],
    )
