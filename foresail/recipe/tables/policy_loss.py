"""The table [loss] of reinforcement learning, with its checks and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Lora, Model, Part, Rollout, Sampling
from foresail.recipe.tables.values import Ratios

WIDEST_GSPO_CLIP = 0.01


class Loss(Part):
    """The policy loss."""

    kind: Literal["clip", "gspo", "cispo", "sapo"] = Field(
        "clip", description="how the probability ratio is bounded"
    )
    clip_low: float = Field(0.2, gt=0, description="lower bound is 1 - clip_low")
    clip_high: float = Field(0.28, gt=0, description="upper bound is 1 + clip_high")
    dual_clip: float | None = Field(None, gt=1, description="bound on the ratio where the advantage is < 0")
    sapo_temperature_pos: float = Field(
        1.0, gt=0, description="sapo: steepness of the gate where the advantage is > 0"
    )
    sapo_temperature_neg: float = Field(
        1.05, gt=0, description="sapo: the same for all other tokens; steeper, so that they fade sooner"
    )
    aggregation: Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"] = Field(
        "token-mean", description="how token losses are averaged; constant: Dr. GRPO's"
    )
    top_entropy_quantile: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of an update's tokens that have a loss, those of highest entropy; 1: all",
    )
    kl: Literal["k1", "k3", "k3_unbiased"] = Field(
        "k3",
        description="KL estimator, if kl_weight > 0; k3_unbiased: k3 times the ratio to the old policy, whose "
        "gradient is that of the KL",
    )
    kl_weight: float = Field(0.0, ge=0, description="weight of the KL term to the reference model; 0: off")
    reference: CheckpointPath | None = Field(
        None, description="checkpoint of the reference model; default: the starting model"
    )
    entropy_weight: float = Field(
        0.0, ge=0, description="weight of the entropy bonus; with entropy_target: its initial value"
    )
    entropy_target: float | None = Field(
        None,
        gt=0,
        description="target entropy, in nats: below it the bonus applies, and its weight grows with every update; "
        "above it the weight falls, and the bonus is off; none: a constant weight",
    )
    entropy_step: float = Field(
        0.005, gt=0, description="entropy_target: change of the bonus's weight per update"
    )
    entropy_weight_max: float = Field(1.0, gt=0, description="entropy_target: largest weight of the bonus")
    echo_weight: float = Field(
        0.0,
        ge=0,
        description="weight of the cross-entropy of the environment's tokens, a mean over them (ECHO)",
    )
    old_logprobs: Literal["engine", "trainer"] = Field(
        "engine", description="engine: those of the sampler, free; trainer: computed by one more forward pass"
    )
    importance_cap: float | None = Field(
        None, gt=0, description="cap of the trainer/engine ratio (truncated importance sampling)"
    )
    importance_level: Literal["token", "sequence"] = Field(
        "token", description="importance_cap: the ratio of each token, or the product over its sample"
    )
    importance_mask: Literal["token", "sequence", "sequence_mean"] | None = Field(
        None,
        description="mask what has a trainer/engine ratio outside importance_range. token: tokens; sequence: "
        "samples, by the product over their tokens; sequence_mean: samples, by the geometric mean",
    )
    importance_range: Ratios = Field((0.5, 2.0), description="importance_mask: ratios that are not masked")
    off_policy_mask_threshold: float | None = Field(
        None,
        gt=0,
        description="mask samples with a negative advantage whose mean log(π_engine / π) is above this",
    )

    @property
    def compares_engine(self) -> bool:
        """Whether the loss compares the trainer's log-probabilities with the engine's."""
        return self.importance_cap is not None or self.importance_mask is not None

    @property
    def ranks_entropy(self) -> bool:
        """Whether only the tokens of highest entropy have a loss."""
        return self.top_entropy_quantile < 1


# Keys that have an effect only with another key: the condition, and the setting that meets it.
NEEDS: dict[str, tuple[Callable[[Loss], bool], str]] = {
    "dual_clip": (lambda loss: loss.kind == "clip", 'loss.kind = "clip"'),
    "sapo_temperature_pos": (lambda loss: loss.kind == "sapo", 'loss.kind = "sapo"'),
    "sapo_temperature_neg": (lambda loss: loss.kind == "sapo", 'loss.kind = "sapo"'),
    "importance_level": (lambda loss: loss.importance_cap is not None, "loss.importance_cap = 2"),
    "importance_range": (lambda loss: loss.importance_mask is not None, 'loss.importance_mask = "sequence"'),
    "entropy_step": (lambda loss: loss.entropy_target is not None, "loss.entropy_target = 0.2"),
    "entropy_weight_max": (lambda loss: loss.entropy_target is not None, "loss.entropy_target = 0.2"),
}


def loss_mistakes(loss: Loss) -> Iterator[str]:
    for key, (is_used, use) in NEEDS.items():
        if getattr(loss, key) != Loss.model_fields[key].default and not is_used(loss):
            yield f"loss.{key} has an effect with {use} only; remove it, or set {use}"
    if loss.kind == "gspo" and loss.aggregation != "seq-mean-token-mean":
        yield (
            f'with loss.aggregation "{loss.aggregation}" the gradient is not GSPO\'s; '
            'set loss.aggregation = "seq-mean-token-mean"'
        )
    if loss.entropy_target is not None and loss.entropy_weight > loss.entropy_weight_max:
        yield (
            f"loss.entropy_weight {loss.entropy_weight:g} begins above loss.entropy_weight_max "
            f"{loss.entropy_weight_max:g}; lower it, or raise that"
        )
    if loss.ranks_entropy and loss.old_logprobs == "engine":
        yield (
            "loss.top_entropy_quantile needs the entropies of all tokens of an update, which are "
            'computed with the trainer\'s old log-probabilities; set loss.old_logprobs = "trainer"'
        )


def old_logprob_mistakes(sampling: Sampling, loss: Loss) -> Iterator[str]:
    if loss.old_logprobs == "engine" and sampling.truncates:
        yield (
            "with top_p, top_k or min_p the engine samples from a truncated distribution that the loss "
            'does not see; set loss.old_logprobs = "trainer"'
        )
    if loss.compares_engine and loss.old_logprobs == "engine":
        key = "importance_cap" if loss.importance_cap is not None else "importance_mask"
        yield (
            f"loss.{key} compares the trainer's log-probabilities with the engine's, so it needs both; "
            'set loss.old_logprobs = "trainer"'
        )


def stale_loss_mistakes(rollout: Rollout, loss: Loss) -> Iterator[str]:
    if rollout.staleness and loss.importance_cap is None:
        yield (
            "samples of rollout.staleness = 1 come from older weights, which the loss must correct; set "
            'loss.importance_cap = 2 and loss.old_logprobs = "trainer"'
        )


def echo_mistakes(loss: Loss, *, has_environment: bool) -> Iterator[str]:
    if loss.echo_weight and not has_environment:
        yield (
            "loss.echo_weight trains on the environment's tokens, and there is no environment; add "
            "[environment], or remove it"
        )


def reference_mistakes(loss: Loss, model: Model, lora: Lora | None, cluster: Cluster) -> Iterator[str]:
    if cluster.ranks > 1 and loss.kl_weight > 0 and lora is not None and loss.reference is None:
        where = model.path or "a checkpoint of the starting model"
        yield (
            "on several ranks the model without its LoRA adapters cannot be the reference; set "
            f'loss.reference = "{where}", or cluster.ranks = 1'
        )


def loss_warnings(loss: Loss) -> Iterator[str]:
    if loss.reference is not None and loss.kl_weight == 0:
        yield "loss.reference is set, but loss.kl_weight is 0, so it has no effect; try kl_weight = 1e-3"
    if loss.kl == "k1" and loss.kl_weight > 0:
        yield (
            f'loss.kl_weight {loss.kl_weight:g} with loss.kl = "k1" has no effect, because the mean '
            'gradient of k1 is zero; set loss.kl = "k3"'
        )
    widest = max(loss.clip_low, loss.clip_high)
    if loss.kind == "gspo" and widest > WIDEST_GSPO_CLIP:
        yield (
            f"GSPO clips the ratio of whole samples, which stays so close to 1 that a bound of {widest:g} "
            "hardly ever clips; the paper has loss.clip_low = 3e-4, loss.clip_high = 4e-4"
        )
