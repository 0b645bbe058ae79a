"""The table [router], losses that balance the load of experts, with its checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Lora, Part


class Router(Part):
    """Losses of the routers, which decay over the run, and updates of their corrections."""

    balance: float = Field(0.01, ge=0, description="initial coefficient of the load-balancing loss; 0: none")
    z: float = Field(0.001, ge=0, description="initial coefficient of the router z-loss; 0: none")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "cosine", description="how both coefficients decay over the run"
    )
    final_share: float = Field(
        0.1, ge=0, le=1, description="share of both coefficients left at the last update"
    )
    correction_rate: float = Field(
        0.0,
        ge=0,
        description="step of the experts' corrections after each update, up for experts below the mean load; 0: "
        "off",
    )

    def left(self, progress: float) -> float:
        """Share of the coefficients at `progress`, 0 to 1: with linear and final_share 0.2 in the middle 0.6."""
        height = {
            "constant": 1.0,
            "linear": 1.0 - progress,
            "cosine": 0.5 * (1.0 + math.cos(math.pi * progress)),
        }[self.schedule]
        return 1.0 if self.schedule == "constant" else self.final_share + (1 - self.final_share) * height


OptionalRouter = Annotated[
    Router | None, Field(description="losses of the routers of a model with experts; none: nothing is added")
]


def router_mistakes(router: Router | None, lora: Lora | None) -> Iterator[str]:
    if router is None:
        return
    if lora is not None:
        yield "[router] trains routers, and with [lora] they are frozen; remove [router]"
    if not (router.balance or router.z or router.correction_rate):
        yield "router.balance, router.z and router.correction_rate are all 0, so [router] does nothing; remove it"


def replay_refusals(replay_routing: bool, shape: ModelShape) -> Iterator[str]:
    if replay_routing and shape.experts is None:
        yield (
            f"engine.replay_routing is for models with experts, and this {shape.family} model is dense; set it to "
            "false"
        )


def router_refusals(router: Router | None, shape: ModelShape) -> Iterator[str]:
    if router is None:
        return
    if shape.experts is None:
        yield f"[router] is for models with experts, and this {shape.family} model is dense; remove [router]"
    elif router.correction_rate and not shape.experts.correction:
        yield (
            f"router.correction_rate moves corrections, and {shape.family} has none (ernie4_5_moe has); set it to "
            "0 and rely on router.balance"
        )
