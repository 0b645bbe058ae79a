"""The recipe of DPO: learning from preference pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from foresail.recipe.estimates.batches import Batches, count_batches
from foresail.recipe.stages.preference_stage import PreferenceStage
from foresail.recipe.tables import parts
from foresail.recipe.tables.preferences import PreferenceLoss, pair_mistakes
from foresail.recipe.tables.sources import HeldOutPairs, PairSources


class Dpo(PreferenceStage):
    """Preference optimisation (DPO) on pairs of a better and a worse answer."""

    entries: ClassVar[str] = "pairs"

    stage: Literal["dpo"] = Field("dpo", description="preference optimisation on given pairs")
    run: parts.Run = parts.Run(name="dpo")
    data: PairSources
    eval: HeldOutPairs = ()
    batch_size: int = Field(32, gt=0, description="pairs per update")
    loss: PreferenceLoss = PreferenceLoss()

    @property
    def samples_per_step(self) -> int:
        return 2 * self.batch_size

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from pair_mistakes(self.max_length, self.packed_tokens, self.cluster.context)

    def count_batches(self) -> Batches:
        """A pair is a prompt with two samples."""
        return count_batches(
            steps=self.steps,
            prompts=self.batch_size,
            samples=self.samples_per_step,
            max_length=self.max_length,
            micro_batch_tokens=self.packed_tokens,
        )
