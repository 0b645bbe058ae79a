"""Tables of preference stages: the losses, and the reference model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.tables.part import Part

PairLoss = Literal["sigmoid", "sigmoid_norm", "ipo", "hinge", "robust", "simpo"]


class PreferenceLoss(Part):
    """The loss of preference pairs."""

    kind: PairLoss = Field(
        "sigmoid",
        description="sigmoid: DPO; sigmoid_norm: DPO with log-ratios per token; ipo; hinge; robust: DPO for labels "
        "that are wrong with probability label_smoothing; simpo: without a reference",
    )
    beta: float = Field(
        0.1,
        gt=0,
        description="strength of the pull to the reference; simpo: scale of the reward, for example 2",
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=0.5, description="assumed share of pairs with swapped labels"
    )
    gamma: float = Field(0.5, ge=0, description="simpo: target margin of chosen over rejected answers")
    sft_weight: float = Field(
        0.0, ge=0, description="weight of the cross-entropy of the chosen answers, a mean over their tokens"
    )

    @property
    def needs_reference(self) -> bool:
        return self.kind != "simpo"

    def mistakes(self) -> Iterator[str]:
        if self.label_smoothing and self.kind in ("ipo", "hinge"):
            yield (
                f'loss.label_smoothing does not go with loss.kind = "{self.kind}"; set it to 0, or loss.kind = '
                '"sigmoid" or "robust"'
            )
        if self.kind == "robust" and not self.label_smoothing:
            yield (
                'loss.kind = "robust" is "sigmoid" without label_smoothing; set loss.label_smoothing = '
                "0.1, for example"
            )

    def warnings(self) -> Iterator[str]:
        if self.kind == "simpo" and self.beta < 1:
            yield (
                f"loss.beta {self.beta:g} is usual for DPO; simpo's beta scales mean log-probabilities "
                "per token, and is usually 2 to 10"
            )


class UnpairedLoss(Part):
    """The loss of answers that were each judged good or bad."""

    kind: Literal["kto", "apo_zero_unpaired"] = Field(
        "kto",
        description="kto: relative to the estimated KL between policy and reference; apo_zero_unpaired: relative "
        "to the reference itself",
    )
    beta: float = Field(0.1, gt=0, description="strength of the pull to the reference")
    desirable_weight: float = Field(1.0, ge=0, description="weight of the losses of good answers")
    undesirable_weight: float = Field(1.0, ge=0, description="weight of the losses of bad answers")

    @property
    def needs_reference(self) -> bool:
        return True

    @property
    def estimates_kl(self) -> bool:
        return self.kind == "kto"

    def mistakes(self) -> Iterator[str]:
        if not self.desirable_weight and not self.undesirable_weight:
            yield "loss.desirable_weight and loss.undesirable_weight are both 0, so nothing is learned; raise one"

    def warnings(self) -> Iterator[str]:
        yield from ()

    def imbalance(self, desirable: int, undesirable: int) -> str | None:
        """What to set where good answers, by number times weight, are not 1 to 4/3 times the bad ones, which is the
        paper's equation 8; a tenth beyond that is passed over. None where nothing is to be set.

        Of 100 good and 300 bad ones desirable_weight should be 3 to 4, or undesirable_weight .25 to .33.
        """
        good, bad = self.desirable_weight * desirable, self.undesirable_weight * undesirable
        if 0.9 * bad <= good <= 1.1 * 1.33 * bad:
            return None
        low, high = bad / desirable, good / undesirable
        return (
            f"{desirable:,} answers are good and {undesirable:,} bad, so that one side outweighs the other; set "
            f"loss.desirable_weight between {low:.3g} and {1.33 * low:.3g}, or loss.undesirable_weight between "
            f"{high / 1.33:.3g} and {high:.3g}"
        )


class Reference(Part):
    """The reference model of preference losses."""

    path: CheckpointPath | None = Field(
        None, description="checkpoint of the reference model; default: the starting model"
    )
    kept: bool = Field(
        True,
        description="compute the reference's log-probabilities once, before the first step, and cache them in the "
        "run's folder; false: keep the model in memory and compute them at every step",
    )


def pair_mistakes(max_length: int, packed_tokens: int, context: int) -> Iterator[str]:
    """A micro-batch too small for both answers of a pair; a single answer is checked for every stage."""
    if max_length <= packed_tokens < 2 * max_length:
        yield (
            f"both answers of a pair are computed together: 2 x {max_length} tokens do not fit a micro-batch of "
            f"{packed_tokens} tokens; set micro_batch_tokens = {-(-2 * max_length // context)} or more"
        )
