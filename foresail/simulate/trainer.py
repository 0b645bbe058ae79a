"""The tables `[trainer]`, `[network]` and `[sync]` of a simulation: the costs of a step besides its rollout."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.tables.part import Part
from foresail.simulate.costs import Card
from foresail.simulate.links import (
    Links,
    chain_seconds,
    one_by_one_seconds,
    ring_seconds,
    tree_seconds,
)
from foresail.simulate.updates import Ranks, TrainedModel

STATE_SHARE = (
    0.8  # of a card's memory for shards of weights, gradients and states; the rest is for activations
)


class Network(Part):
    """Links between cards at 0.8 of their data sheet, about the practical value."""

    cards_per_host: int = Field(8, gt=0, description="cards that have the fast links to each other")
    inside_gb_per_second: float = Field(360.0, gt=0, description="into a card from its host's others")
    between_gb_per_second: float = Field(40.0, gt=0, description="into a card from another host")
    latency_us: float = Field(5.0, ge=0, description="of a message, beside its bytes")

    @property
    def links(self) -> Links:
        return Links(
            cards_per_host=self.cards_per_host,
            inside=self.inside_gb_per_second * 1e9,
            between=self.between_gb_per_second * 1e9,
            latency=self.latency_us / 1e6,
        )


class Sync(Part):
    """New weights from the trainer to the engines, between two rollouts."""

    kind: Literal["one_by_one", "tree", "chain"] = Field(
        "chain",
        description="from a trainer of its own; tree: who has them sends them on; chain: piece by piece",
    )
    piece_mb: float = Field(64.0, gt=0, description="of a chain")
    check_seconds_per_gb: float = Field(
        0.0, ge=0, description="to put weights in place and prove them, of what one card holds"
    )

    def seconds(
        self, weight_bytes: float, *, instances: int, cards_per_instance: int, shared: bool, links: Links
    ) -> float:
        """Seconds until every card has its part; `shared` cards gather it from their shards."""
        part = weight_bytes / cards_per_instance
        check = part / 1e9 * self.check_seconds_per_gb
        if shared:
            return ring_seconds(part, instances, apart_by(cards_per_instance, links)) + check
        match self.kind:
            case "one_by_one":
                return one_by_one_seconds(part, instances, links.between) + check
            case "tree":
                return tree_seconds(part, instances, links.between) + check
            case "chain":
                return chain_seconds(part, instances, links.between, self.piece_mb * 1e6) + check


def apart_by(cards: int, links: Links) -> Links:
    """The links of a ring with every n-th card of a host."""
    return Links(
        cards_per_host=max(1, links.cards_per_host // cards),
        inside=links.inside,
        between=links.between,
        latency=links.latency,
    )


class Trainer(Part):
    """The update of a step, on cards like the engines'. Defaults are the 7B shape as measured on one H200."""

    ranks: int | None = Field(
        None, gt=0, description="cards that only train; none: those of the instances, in turns with them"
    )
    updates: int = Field(1, gt=0, description="optimiser updates a step, each with its share of the samples")
    passes: int = Field(1, gt=0, description="over all samples")
    parameters_billions: float = Field(7.6, gt=0, description="of the model, with all experts")
    active_billions: float = Field(7.07, gt=0, description="that a token is multiplied with")
    layers: int = Field(28, gt=0)
    width: int = Field(3584, gt=0, description="of the residual stream")
    attention_width: int = Field(3584, gt=0, description="of all heads of a layer")
    flops_share: float = Field(
        0.56, gt=0, le=1, description="of the data sheet; 0.44 where activations are computed twice"
    )
    micro_batch_tokens: int = Field(12_288, gt=0, description="of a rank")
    state_bytes: float = Field(10.0, gt=0, description="a parameter: weight, gradient and 8-bit states")
    weight_bytes: float = Field(2.0, gt=0, description="of a gathered weight")
    gradient_bytes: float = Field(4.0, gt=0, description="of a gradient on its way")
    shard_ranks: int | None = Field(
        None, gt=0, description="ranks that hold the model once, other such groups hold copies; none: all"
    )
    expert_billions: float = Field(0.0, ge=0, description="of the parameters, those of routed experts")
    expert_ranks: int = Field(1, gt=0, description="ranks that hold all experts once, and send them tokens")
    expert_choices: int = Field(8, gt=0, description="routed experts of a token, in every layer")
    overlap: float = Field(0.8, ge=0, le=1, description="share of communication that arithmetic can hide")

    @property
    def model(self) -> TrainedModel:
        return TrainedModel(
            shared_parameters=(self.parameters_billions - self.expert_billions) * 1e9,
            expert_parameters=self.expert_billions * 1e9,
            active_parameters=self.active_billions * 1e9,
            layers=self.layers,
            width=self.width,
            attention_width=self.attention_width,
            expert_choices=self.expert_choices if self.expert_billions else 0,
        )

    def on(self, count: int, card: Card, links: Links) -> Ranks:
        return Ranks(
            count=count,
            shard=self.shard_ranks or count,
            experts=self.expert_ranks,
            flops=card.flops * self.flops_share,
            links=links,
            micro_batch_tokens=self.micro_batch_tokens,
            weight_bytes=self.weight_bytes,
            gradient_bytes=self.gradient_bytes,
            overlap=self.overlap,
        )

    def least_ranks(self, card: Card) -> int:
        """The least number of ranks that hold the shards of one model."""
        return math.ceil(self.state_bytes * self.parameters_billions * 1e9 / (STATE_SHARE * card.memory))

    def mistakes(self, ranks: int, card: Card) -> Iterator[str]:
        shard = self.shard_ranks or ranks
        if shard > ranks or ranks % shard or shard % self.expert_ranks:
            yield (
                f"{ranks} ranks that train cannot be cut into equal groups of trainer.shard_ranks {shard}, and "
                f"these of trainer.expert_ranks {self.expert_ranks}; each must divide the one before"
            )
        if self.expert_billions >= self.parameters_billions:
            yield (
                f"trainer.expert_billions {self.expert_billions:g} is not below trainer.parameters_billions "
                f"{self.parameters_billions:g}, which include them"
            )
        if shard < self.least_ranks(card):
            yield (
                f"{shard} ranks do not hold {self.parameters_billions:g} billion parameters of "
                f"trainer.state_bytes {self.state_bytes:g}: at least {self.least_ranks(card)} do; raise "
                "trainer.ranks or trainer.shard_ranks, or lower trainer.state_bytes"
            )
