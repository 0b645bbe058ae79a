"""A stage's models on one rank, and function calls on all ranks.

    trainer.on_all_ranks(update, sequences)   # on every rank: update(trainer, sequences), each with its own trainer

Rank 0 has the run directory, the data and the rollouts (`session.Session`), and sends orders. The other ranks are
followers: they hold models and carry out the orders (`run_follower`). In one process, `on_all_ranks` calls the
function, nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import torch

from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.length_view import CorpusSource
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library, choose_threads
from foresail.recipe.stages.stage import Stage
from foresail.runlog.display import Display
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.checkpoints.shared_folder import Mark
from foresail.train.learner import Learner, open_policy
from foresail.world import World

Recipe = TypeVar("Recipe", bound=Stage)
P = ParamSpec("P")
R = TypeVar("R")


class Silent(Display):
    """A display that shows nothing, for followers."""

    def __init__(self) -> None:
        super().__init__("", 0)
        self.live = None

    def note(self, text: str, style: str = "") -> None:
        pass

    def write_line(self, text: str) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class FollowerStart(Generic[Recipe]):
    """What a follower starts with: the recipe, and the checkpoint that the run resumes from."""

    recipe: Recipe
    start: Path | None
    progress: Progress
    mark: Mark  # in the run's folder, which all ranks must see
    deterministic: bool
    batch_invariant: bool


@dataclass(frozen=True, kw_only=True)
class Order:
    """A function of some module, which every rank calls with its own trainer."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    progress: Progress


class Trainer(Generic[Recipe]):
    """`critic`, `reference`, `teacher` and `copy` are None in stages without them."""

    def __init__(
        self,
        recipe: Recipe,
        world: World,
        device: torch.device,
        *,
        start: Path | None,
        progress: Progress,
        display: Display,
    ) -> None:
        self.recipe, self.world, self.device = recipe, world, device
        self.start, self.progress, self.display = start, progress, display
        self.critic: Any = None
        self.reference: Decoder | None = None
        self.teacher: Decoder | None = None
        self.corpora: dict[str, Corpus] = {}  # of pretraining, by folder
        self.sources: list[list[CorpusSource]] = []  # of its stages
        self.copy: Decoder | None = None  # of all weights, for the engines of this rank
        self.copy_version: int | None = None  # the step after which they were copied

    def open_models(self) -> None:
        """Open the policy, from the checkpoint or the recipe's starting model."""
        self.policy, self.tokenizer = open_policy(
            self.recipe, self.start, self.device, self.world, self.progress.day
        )
        self.learners: dict[str, Learner[Any]] = {self.policy.name: self.policy}
        choose_threads(
            self.policy.model.shape.num_parameters, self.world.size, beside=self.recipe.engines_beside
        )
        choose_library(self.policy.model.dtype)

    def on_all_ranks(
        self, function: Callable[Concatenate[Any, P], R], *arguments: P.args, **keywords: P.kwargs
    ) -> R:
        """This rank's result. Other ranks import the function, so it must be a module's, no lambda."""
        self.on_other_ranks(function, *arguments, **keywords)
        return function(self, *arguments, **keywords)

    def on_other_ranks(
        self, function: Callable[Concatenate[Any, P], Any], *arguments: P.args, **keywords: P.kwargs
    ) -> None:
        """Call it on the other ranks only, while rank 0 does its own part."""
        if self.world.size > 1:
            order = Order(
                function=function, arguments=arguments, keywords=dict(keywords), progress=self.progress
            )
            self.world.broadcast(order)


def run_follower(world: World, device: torch.device, opening: FollowerStart[Stage]) -> None:
    """A follower: open the models, then carry out rank 0's orders until there are no more."""
    trainer = Trainer(
        opening.recipe, world, device, start=opening.start, progress=opening.progress, display=Silent()
    )
    trainer.open_models()
    order: Order | None
    while (order := world.broadcast(None)) is not None:
        trainer.progress = order.progress
        order.function(trainer, *order.arguments, **order.keywords)
