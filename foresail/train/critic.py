"""PPO's critic: the reward to be expected before every token, the advantages that follow, and its own updates.

    updates, metrics = critic.appraise(updates)     # values, returns and advantages of every token
    metrics |= critic.learn(updates, …)             # then one update over each part

The value of a token is read where it was predicted, from the tokens before it. Nothing is bootstrapped: a response
that was cut has got its reward as well.

Legend: T tokens, M those with a loss, D hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from foresail.algorithms.advantages import gae, whiten
from foresail.algorithms.value_loss import explained_variance, value_loss
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.device import choose_dtype
from foresail.model.hf import load_model, save_model
from foresail.recipe import parts
from foresail.recipe.hf_config import NO_SPECIAL_IDS
from foresail.recipe.stages import Rl
from foresail.records import PackedBatch
from foresail.train.checkpoint import latest_checkpoint, load_optimizer, read_state
from foresail.train.optimizer import build_optimizer
from foresail.train.rl_metrics import mean_over_updates
from foresail.train.schedule import learning_rate
from foresail.train.session import Session
from foresail.train.starting_point import load_model_and_tokenizer
from foresail.train.step import NonFiniteLoss, descend

Updates = Sequence[Sequence[PackedBatch]]  # the micro-batches of every update of a step
FOLDER = "critic"  # beside the policy's optimiser in a checkpoint


def open_critic(session: Session, recipe: Rl) -> Critic | None:
    """Fresh, or as the run's newest checkpoint has it; from now on every checkpoint holds it."""
    if recipe.critic is None:
        return None
    checkpoint = latest_checkpoint(session.run) if session.saved is not None else None
    if recipe.critic.kind == "head":
        trunk = session.model
    else:
        trunk = load_trunk(checkpoint, recipe.critic, recipe, session.device)
        if recipe.recompute:
            trunk.recompute_blocks()
    critic = Critic(trunk, recipe.critic)
    if checkpoint is not None:
        critic.load(checkpoint)
    session.companions.append(critic)
    return critic


def load_trunk(checkpoint: Path | None, settings: parts.Critic, recipe: Rl, device: torch.device) -> Decoder:
    """A model of the critic's own, without the head that would speak."""
    if checkpoint is not None:
        dtype = choose_dtype(recipe.model.dtype, device)
        return load_model(checkpoint / "trainer" / FOLDER, dtype=dtype, device=device)
    start = recipe.model
    if settings.path is not None:
        tokenizer = start.tokenizer or start.path
        start = start.model_copy(update={"path": settings.path, "shape": None, "tokenizer": tokenizer})
    trunk, _ = load_model_and_tokenizer(
        start, seed=recipe.run.seed, device=device, max_length=recipe.max_length
    )
    trunk.head, trunk.shape = None, trunk.shape.model_copy(update={"tied": True})
    return trunk


class Critic:
    """A trunk that reads and one layer that judges. The trunk is its own, or the policy's, and then only read."""

    def __init__(self, trunk: Decoder, settings: parts.Critic) -> None:
        self.settings, self.trunk = settings, trunk
        # float32 and zero: at first nothing is expected of any token, whatever the seed
        self.head = nn.Linear(trunk.shape.hidden_size, 1, device=trunk.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.trained = nn.ModuleDict({"head": self.head})
        if settings.kind == "model":
            self.trained["trunk"] = trunk
        self.optimizer = build_optimizer(self.trained, settings.optimizer)

    def values(self, batch: PackedBatch) -> Tensor:
        """What the critic expects before each token with a loss."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and "trunk" in self.trained):
            attend = PackedAttention(batch.starts_S1, batch.parents_S)
            hidden_TD = self.trunk(batch.ids_T, batch.positions_T, attend)
        return self.head(hidden_TD[batch.sources_M].float()).squeeze(-1)

    @torch.no_grad()
    def appraise(self, updates: Updates) -> tuple[list[list[PackedBatch]], dict[str, float]]:
        """The same micro-batches with values, returns, and advantages in units of their spread over the step."""
        appraised = [[self._appraise(batch) for batch in batches] for batches in updates]
        values_M, returns_M = join(appraised, "values_M"), join(appraised, "returns_M")
        row = join(appraised, "advantages_M")[None]
        whitened_M = whiten(row, torch.ones_like(row))[0]
        metrics = {
            "critic/values/mean": values_M.mean().item(),
            "critic/returns/mean": returns_M.mean().item(),
            "critic/vf_explained_var": explained_variance(values_M, returns_M),
        }
        sizes = [batch.targets_M.numel() for batches in updates for batch in batches]
        shares = iter(whitened_M.split(sizes))
        return [[replace(b, advantages_M=next(shares)) for b in batches] for batches in appraised], metrics

    def _appraise(self, batch: PackedBatch) -> PackedBatch:
        assert batch.rewards_M is not None, "a critic judges rewards"
        values_M, settings = self.values(batch), self.settings
        advantages_M = gae(
            batch.rewards_M, values_M, batch.sequence_M, gamma=settings.gamma, lam=settings.lam
        )
        return replace(batch, values_M=values_M, returns_M=advantages_M + values_M, advantages_M=advantages_M)

    def learn(self, updates: Updates, *, before: int, total: int) -> dict[str, float]:
        """Updates over appraised batches, `before` of `total` being done already. Metrics are means over them."""
        results = []
        for number, batches in enumerate(updates, start=before + 1):
            rate = learning_rate(number, total, self.settings.optimizer)
            num_tokens = sum(batch.targets_M.numel() for batch in batches)
            try:
                descent = descend(self.optimizer, batches, partial(self._share, num_tokens=num_tokens), rate)
            except NonFiniteLoss as error:
                raise NonFiniteLoss(f"the critic's {error}; its rate is critic.optimizer.lr") from error
            found = {"critic/vf_loss": descent.loss, "critic/grad_norm": descent.norm, "critic/lr": rate}
            results.append(found | descent.means)
        return mean_over_updates(results)

    def _share(self, batch: PackedBatch, *, num_tokens: int) -> tuple[Tensor, dict[str, Tensor]]:
        return value_loss(self.values(batch), batch, clip=self.settings.clip, num_tokens=num_tokens)

    def save(self, trainer: Path) -> None:
        """What `load` needs: the layer, the optimiser, and the trunk where it is the critic's own."""
        folder = trainer / FOLDER
        folder.mkdir()
        if self.settings.kind == "model":
            save_model(self.trunk, folder, special=NO_SPECIAL_IDS)
        save_file(self.head.state_dict(), folder / "head.safetensors")
        tensors = {name: tensor.contiguous() for name, tensor in self.optimizer.state().items()}
        save_file(tensors, folder / "optimizer.safetensors")

    def load(self, checkpoint: Path) -> None:
        self.head.load_state_dict(read_state(checkpoint, f"{FOLDER}/head.safetensors"))
        load_optimizer(checkpoint, self.optimizer, file=f"{FOLDER}/optimizer.safetensors")


def join(updates: Updates, field: str) -> Tensor:
    """One field of all micro-batches, end to end."""
    return torch.cat([getattr(batch, field) for batches in updates for batch in batches])
