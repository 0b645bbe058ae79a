"""The recipe of KTO: learning from answers that were each judged good or bad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from foresail.recipe.stages.preference_stage import PreferenceStage
from foresail.recipe.tables import parts
from foresail.recipe.tables.preferences import UnpairedLoss
from foresail.recipe.tables.sources import AnswerSources, HeldOutAnswerSources


class Kto(PreferenceStage):
    """Preference optimisation (KTO) on answers that were each judged good or bad."""

    entries: ClassVar[str] = "answers"

    stage: Literal["kto"] = Field("kto", description="preference optimisation on answers judged alone")
    run: parts.Run = parts.Run(name="kto")
    data: AnswerSources
    eval: HeldOutAnswerSources = ()
    batch_size: int = Field(32, gt=0, description="answers per update")
    loss: UnpairedLoss = UnpairedLoss()

    @property
    def samples_per_step(self) -> int:
        return self.batch_size

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.loss.estimates_kl and self.batch_size < 2:
            yield (
                "the KL to the reference is estimated from answers to other prompts of the batch; set "
                "batch_size = 2 or more"
            )
