"""The recipe of online DPO: preference pairs of the policy's own samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field

from foresail.recipe.estimates.disk import CheckpointSize
from foresail.recipe.estimates.memory import VALUE_BYTES, Device, Dtype, ExtraMemory, dtype_of
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.critic import second_model_refusals
from foresail.recipe.stages.rl_checks import reward_mistakes
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.tables import parts
from foresail.recipe.tables.pairing import OnlineReference, Pairing
from foresail.recipe.tables.preferences import PreferenceLoss, pair_mistakes
from foresail.recipe.tables.sources import Sources


class OnlineDpo(RolloutStage):
    """Preference optimisation on pairs of the model's own samples."""

    stage: Literal["online-dpo"] = Field("online-dpo", description="preference pairs of one's own samples")
    run: parts.Run = parts.Run(name="online-dpo")
    data: Sources = Field(description="problems or open prompts; [[data]] tables: a mixture")
    samples_per_prompt: int = Field(32, gt=1, description="responses per problem")
    pairing: Pairing = Pairing()
    loss: PreferenceLoss = PreferenceLoss()
    reference: OnlineReference = OnlineReference()
    optimizer: parts.Optimizer = parts.Optimizer(lr=5e-7)

    @property
    def holds_reference(self) -> bool:
        """Whether a reference model stays in memory beside the trained one."""
        return self.loss.needs_reference and (self.lora is None or self.reference.path is not None)

    def plain_mistakes(self) -> Iterator[str]:
        yield from super().plain_mistakes()
        yield from reward_mistakes(self.reward, [source.grader for source in self.data])
        yield from self.loss.mistakes()
        if 2 * self.pairing.most > self.samples_per_prompt:
            yield (
                f"pairing.most {self.pairing.most} pairs of a prompt take {2 * self.pairing.most} samples; set "
                f"samples_per_prompt = {2 * self.pairing.most} or more"
            )
        yield from pair_mistakes(self.max_length, self.packed_tokens, self.cluster.context)
        if self.engine.replay_routing:
            yield "engine.replay_routing is for RL, which compares with the engine's probabilities; remove it"
        if self.environment is not None and self.environment.program is not None:
            yield (
                "an episode of environment.program may have several records, and a pair is of two; use "
                "environment.name, or foresail rl"
            )
        yield from self.reference_mistakes()

    def reference_mistakes(self) -> Iterator[str]:
        settings, needs = self.reference, self.loss.needs_reference
        if not needs and (settings.path is not None or settings.renew_every):
            yield f'loss.kind = "{self.loss.kind}" has no reference; remove [reference]'
        if self.lora is None:
            return
        if settings.renew_every:
            yield (
                "reference.renew_every copies the policy's weights, and with [lora] it shares most of them with "
                "the reference; remove one of them"
            )
        if self.cluster.ranks > 1 and settings.path is None and needs:
            where = self.model.path or "a checkpoint of the starting model"
            yield (
                "on several ranks the model without its LoRA adapters cannot be the reference; set "
                f'reference.path = "{where}", or cluster.ranks = 1'
            )

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        size = shape.without_mtp().num_parameters * VALUE_BYTES[dtype] if self.holds_reference else 0
        return replace(super().extra_memory(shape, dtype), reference=size)

    def measure_checkpoint(self, shape: ModelShape, device: Device) -> CheckpointSize:
        """A reference that is renewed is a part of every checkpoint."""
        size = super().measure_checkpoint(shape, device)
        if not self.reference.renew_every:
            return size
        dtype = dtype_of(self.model.dtype, device)
        return replace(size, state=size.state + shape.without_mtp().num_parameters * VALUE_BYTES[dtype])

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        yield from second_model_refusals("reference.path", self.reference.path, self.max_length)

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        yield from self.loss.warnings()
