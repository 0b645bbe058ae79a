"""PPO's critic: the expected reward before every token, the advantages computed from it, and its own updates.

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
from foresail.algorithms.batch_losses import explained_variance, value_loss
from foresail.algorithms.turn_gae import turn_gae
from foresail.model.decoder import Decoder
from foresail.model.device import choose_dtype
from foresail.model.hf import load_model, save_model
from foresail.model.output import Output
from foresail.model.packed import gather_losses, own_losses, run_packed
from foresail.model.readouts import hidden_states
from foresail.model.shards import gather_whole, put_rows, shard_module
from foresail.recipe.shape.hf_config import NO_SPECIAL_IDS
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables import parts
from foresail.records import PackedBatch
from foresail.train.learner import TRAINER, Learner, arrangement, read_state
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.optim.schedule import learning_rate
from foresail.train.policy.metrics import mean_of, mean_over_updates
from foresail.train.starting_point import load_model_and_tokenizer
from foresail.train.trainer import Trainer
from foresail.train.update.batches import TURN
from foresail.train.update.step import BatchLoss, NonFiniteLoss, prefixed, train_step
from foresail.world import ONE_PROCESS, World

Updates = Sequence[Sequence[PackedBatch]]  # the micro-batches of every update of a step
FOLDER = f"{TRAINER}/critic"


def open_critic(trainer: Trainer[Rl]) -> Critic | None:
    """A fresh critic, or the checkpoint's; from now on every checkpoint holds it."""
    recipe = trainer.recipe
    if recipe.critic is None:
        return None
    if recipe.critic.kind == "head":
        trunk = trainer.policy.model
    else:
        trunk = load_trunk(trainer.start, recipe.critic, recipe, trainer.device, trainer.world)
        if recipe.recompute:
            trunk.recompute_blocks()
    by_turn = recipe.credit.kind == "turn_gae"
    critic = Critic(trunk, recipe.critic, by_turn=by_turn, world=trainer.world)
    if trainer.start is not None:
        critic.load(trainer.start)
    trainer.learners[critic.learner.name] = critic.learner
    return critic


def load_trunk(
    checkpoint: Path | None,
    settings: parts.Critic,
    recipe: Rl,
    device: torch.device,
    world: World = ONE_PROCESS,
) -> Decoder:
    """A model of the critic's own, without the language head."""
    arrange = arrangement(None, world)
    if checkpoint is not None:
        dtype = choose_dtype(recipe.model.dtype, device)
        return load_model(checkpoint / FOLDER, dtype=dtype, device=device, arrange=arrange)
    start = recipe.model
    if settings.path is not None:
        tokenizer = start.tokenizer or start.path
        start = start.model_copy(update={"path": settings.path, "shape": None, "tokenizer": tokenizer})
    trunk, _ = load_model_and_tokenizer(
        start.without_mtp(),
        seed=recipe.run.seed,
        device=device,
        max_length=recipe.max_length,
        arrange=arrange,
    )
    trunk.head, trunk.shape = None, trunk.shape.model_copy(update={"tied": True})
    return trunk


class ValueModel(nn.Module):
    """A trunk and a value layer. The trunk is the critic's own, or the policy's, which it does not train."""

    def __init__(self, trunk: Decoder, *, own: bool) -> None:
        super().__init__()
        # float32 and zero: the first values are 0 with any seed
        self.head = nn.Linear(trunk.shape.hidden_size, 1, device=trunk.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        if own:
            self.trunk = trunk
        self.own, self.reads = own, (trunk,)  # in a tuple: the policy's parameters are none of this module's

    def forward(self, batch: PackedBatch) -> Output[Tensor]:
        """The expected reward before each token with a loss."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.own):
            hidden_TD, *side = run_packed(self.reads[0], batch, hidden_states)
        sources, _ = own_losses(batch)
        values_M = gather_losses(self.head(hidden_TD[sources].float()).squeeze(-1), batch)
        return Output(values_M, *side) if self.own else Output(values_M)


class Critic:
    """Values for a step's samples, and updates towards their returns."""

    def __init__(
        self,
        trunk: Decoder,
        settings: parts.Critic,
        *,
        by_turn: bool = False,
        world: World = ONE_PROCESS,
    ) -> None:
        """`by_turn`: a step is a turn, not a token."""
        self.by_turn = by_turn
        self.settings, self.model = settings, ValueModel(trunk, own=settings.kind == "model")
        if world.mesh is not None:
            shard_module(self.model, world.mesh)
        self.learner = Learner(
            name="critic",
            model=self.model,
            optimizer=build_optimizer(self.model, settings.optimizer, world=world),
            folder=FOLDER,
            save_weights=self.save_weights,
        )

    @torch.no_grad()
    def appraise(self, updates: Updates) -> tuple[list[list[PackedBatch]], dict[str, float]]:
        """The same micro-batches with values, returns, and advantages in units of their spread over the step."""
        appraised = [[self._appraise(batch) for batch in batches] for batches in updates]
        values_M, returns_M = join(appraised, "values_M"), join(appraised, "returns_M")
        row, world = join(appraised, "advantages_M")[None], self.learner.world.data
        whitened_M = whiten(row, torch.ones_like(row), world)[0]
        metrics = {
            "critic/values/mean": mean_of(values_M, world),
            "critic/returns/mean": mean_of(returns_M, world),
            "critic/vf_explained_var": explained_variance(values_M, returns_M, world),
        }
        sizes = [batch.targets_M.numel() for batches in updates for batch in batches]
        shares = iter(whitened_M.split(sizes))
        return [[replace(b, advantages_M=next(shares)) for b in batches] for batches in appraised], metrics

    def _appraise(self, batch: PackedBatch) -> PackedBatch:
        assert batch.rewards_M is not None, "a critic judges rewards"
        values_M, rates = self.model(batch).value, {"gamma": self.settings.gamma, "lam": self.settings.lam}
        if self.by_turn:
            turns_M = batch.side[TURN][batch.targets_M]
            turns = turn_gae(batch.rewards_M, values_M, batch.sequence_M, turns_M, **rates)
            return replace(
                batch, values_M=values_M, returns_M=turns.returns_M, advantages_M=turns.advantages_M
            )
        advantages_M = gae(batch.rewards_M, values_M, batch.sequence_M, **rates)
        return replace(batch, values_M=values_M, returns_M=advantages_M + values_M, advantages_M=advantages_M)

    def learn(self, updates: Updates, *, before: int, total: int) -> dict[str, float]:
        """Updates over appraised batches, after `before` of `total` updates. Metrics are means over updates."""
        results = []
        for number, batches in enumerate(updates, start=before + 1):
            rate = learning_rate(number, total, self.settings.optimizer)
            num_tokens = self.learner.world.data.sum(sum(batch.targets_M.numel() for batch in batches))
            batch_loss = partial(value_batch_loss, clip=self.settings.clip, num_tokens=num_tokens)
            try:
                metrics = train_step(self.learner, batches, batch_loss, learning_rate=rate)
            except NonFiniteLoss as error:
                raise NonFiniteLoss(f"the critic's {error}; its rate is critic.optimizer.lr") from error
            results.append(prefixed("critic", {"vf_loss": metrics.pop("loss"), **metrics, "lr": rate}))
        return mean_over_updates(results)

    def save_weights(self, checkpoint: Path) -> None:
        """The value layer, and the trunk if it is the critic's own."""
        if self.model.own:
            save_model(
                self.model.trunk, checkpoint / FOLDER, special=NO_SPECIAL_IDS, world=self.learner.world
            )
        head = {name: gather_whole(weight, to=0) for name, weight in self.model.head.named_parameters()}
        tensors = {name: weight.clone() for name, weight in head.items() if weight is not None}
        if tensors:
            save_file(tensors, checkpoint / FOLDER / "head.safetensors")

    def load(self, checkpoint: Path) -> None:
        saved = read_state(checkpoint, f"{FOLDER}/head.safetensors")
        weights = dict(self.model.head.named_parameters())
        sizes, saved_sizes = (
            {name: list(weight.shape) for name, weight in tensors.items()} for tensors in (weights, saved)
        )
        if saved_sizes != sizes:
            raise ValueError(
                f"{checkpoint / FOLDER} holds the layer of another critic: {saved_sizes}, not {sizes}"
            )
        for name, weight in weights.items():
            put_rows(weight, 0, saved[name])
        self.learner.load(checkpoint)


def value_batch_loss(
    model: ValueModel, batch: PackedBatch, *, clip: float | None, num_tokens: int
) -> BatchLoss:
    values_M, *side = model(batch)
    return BatchLoss(*value_loss(values_M, batch, clip=clip, num_tokens=num_tokens), *side)


def join(updates: Updates, field: str) -> Tensor:
    """One field of all micro-batches, end to end."""
    return torch.cat([getattr(batch, field) for batches in updates for batch in batches])
