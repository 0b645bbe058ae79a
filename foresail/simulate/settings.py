"""The settings of a simulation, as the tables of a TOML file.

load_simulation("recipes/simulate/seer-moonlight.toml", ["rollout.policy=group", "speculation=none"])
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from foresail.recipe.reading.load import load_table
from foresail.recipe.tables.part import CheckedPart, Part
from foresail.simulate.costs import CARDS, MEASURED, ModelSize, StepCost, carry_over, fit, read_step_table
from foresail.simulate.drafting_gain import DraftingGain, Speculation
from foresail.simulate.engine import WATERMARK, Machine
from foresail.simulate.trainer import Network, Sync, Trainer
from foresail.simulate.workloads import Workload


class Machines(Part):
    """Equal instances, each a model on one or more cards."""

    instances: int = Field(gt=0, description="engines")
    card: Literal["H200", "H800", "H20"] = Field("H200", description="see costs.CARDS")
    cards_per_instance: int = Field(1, gt=0, description="a step's work is split evenly over them")
    weight_gb: float = Field(14.1, gt=0, description="weights, in all cards of an instance")
    active_billions: float = Field(7.07, gt=0, description="parameters a token is multiplied with")
    kv_bytes: int = Field(57_344, gt=0, description="keys and values of a token, in all layers")
    memory_share: float = Field(0.9, gt=0, le=1, description="of a card's memory, for weights and cache")
    max_running: int = Field(1024, gt=0, description="rows of an instance")
    migration_gb_per_second: float = Field(50.0, gt=0, description="into a card, from the pool of caches")
    host_gb: float | None = Field(
        None, ge=0, description="that pool, of all instances; none: as large as needed"
    )
    costs: str = Field("benchmarks/measured/h200_step_costs.json", description="measured steps")
    costs_shape: Literal["7B", "1.5B"] = Field("7B", description="which shape of that table to carry over")

    @property
    def kv_tokens(self) -> int:
        """The capacity of the KV cache in tokens, besides the weights."""
        memory = CARDS[self.card].memory * self.cards_per_instance * self.memory_share
        return int((memory - self.weight_gb * 1e9) / self.kv_bytes)

    @property
    def host_bytes(self) -> int:
        return sys.maxsize if self.host_gb is None else int(self.host_gb * 1e9)

    @property
    def migration_seconds_per_token(self) -> float:
        return self.kv_bytes / (self.migration_gb_per_second * 1e9 * self.cards_per_instance)

    def step_cost(self) -> StepCost:
        measured = fit(read_step_table(Path(self.costs), self.costs_shape)).cost
        model = ModelSize(
            weight_bytes=self.weight_gb * 1e9,
            active_parameters=self.active_billions * 1e9,
            kv_bytes=self.kv_bytes,
        )
        card = CARDS[self.card]
        return carry_over(measured, MEASURED[self.costs_shape], model, card, self.cards_per_instance)


class Rollout(Part):
    """The scheduler's policy and its limits."""

    policy: Literal["fifo", "group", "context", "oracle"] = Field("context", description="see policies")
    chunk_tokens: int | None = Field(2048, gt=0, description="none: requests run undivided")
    staleness: int = Field(0, ge=0, le=1, description="1: the next step's rollout runs beside the update")


class Step(Part):
    """When groups are launched and judged, and when the step is over."""

    launches: Literal["all", "rounds", "continuous"] = Field(
        "all", description="all: every group at once; rounds: as many as are wanted, until enough are valid"
    )
    early_termination: bool = Field(True, description="continuous: close on the first prefix that suffices")
    grading: Literal["after-all", "as-they-end"] = Field(
        "as-they-end", description="after-all: when nothing is left to generate"
    )
    graders: int = Field(256, gt=0, description="verdicts at once")
    launch_cap: int = Field(8, gt=0, description="groups launched at most, times those wanted")


class Simulation(CheckedPart):
    """All settings. Without a trainer a step is its rollout."""

    name: str = Field("simulation", description="title and folder of the results")
    seed: int = Field(0, ge=0, description="other groups")
    steps: int = Field(1, gt=0, description="steps, each with its own groups")
    cluster: Machines
    workload: Workload
    rollout: Rollout = Rollout()
    step: Step = Step()
    speculation: Speculation | None = Field(None, description="drafts from siblings; none: no drafts")
    trainer: Trainer | None = Field(None, description="what updates the weights; none: the rollout alone")
    network: Network = Network()
    sync: Sync = Sync()

    def machine(self, cost: StepCost) -> Machine:
        """One instance."""
        return Machine(
            kv_tokens=self.cluster.kv_tokens,
            max_running=self.cluster.max_running,
            cost=cost,
            gain=None if self.speculation is None else DraftingGain(self.speculation),
            kv_bytes=self.cluster.kv_bytes,
            migration_seconds_per_token=self.cluster.migration_seconds_per_token,
        )

    def mistakes(self) -> Iterator[str]:
        work, longest = self.workload, self.workload.prompt_tokens + self.workload.max_new_tokens
        if work.mean_tokens >= work.max_tokens:
            yield f"workload.mean_tokens {work.mean_tokens} is not below workload.max_tokens {work.max_tokens}"
        if self.cluster.kv_tokens * (1 - WATERMARK) < longest:
            yield (
                f"cluster.weight_gb {self.cluster.weight_gb:g} leaves no memory for one request of {longest:,} "
                "tokens; raise cluster.cards_per_instance, or lower workload.max_tokens"
                + ("" if work.tools is None else " or workload.tools.max_turns")
            )
        if work.tools is not None:
            yield from work.tools.mistakes()
        if self.rollout.staleness and (self.trainer is None or self.trainer.ranks is None):
            yield (
                "rollout.staleness 1 lets the next rollout run while the trainer updates, on other cards: set "
                "trainer.ranks, or rollout.staleness = 0"
            )
        if self.trainer is not None:
            yield from self.trainer.mistakes(self.trainer_ranks, CARDS[self.cluster.card])

    @property
    def trainer_ranks(self) -> int:
        """Cards that train: the trainer's own, or those of all instances."""
        assert self.trainer is not None, "there is a trainer"
        return self.trainer.ranks or self.cluster.instances * self.cluster.cards_per_instance

    @property
    def num_cards(self) -> int:
        """The total number of cards."""
        rollout = self.cluster.instances * self.cluster.cards_per_instance
        return rollout if self.trainer is None else rollout + (self.trainer.ranks or 0)


def load_simulation(path: str | Path, overrides: Sequence[str] = ()) -> Simulation:
    """A TOML file and `a.b=c` overrides, checked as recipes are."""
    return load_table(path, overrides, Simulation)
