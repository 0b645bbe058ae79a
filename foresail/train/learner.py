"""A learner: a model of a run, its optimiser, and their files in every checkpoint.

    policy, tokenizer = open_policy(recipe, checkpoint, device)   # fresh, or as the checkpoint has it
    metrics = train_step(policy, batches, batch_loss, learning_rate=1e-6)
    policy.save(folder)

A run may have several: `Session.learners` holds the policy, and what a stage adds to it (a critic, a reference).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from foresail.model.adapters import Adapters
from foresail.model.decoder import Decoder
from foresail.model.device import choose_dtype
from foresail.model.hf import Arrange, load_model, save_model
from foresail.model.lora import add_pairs
from foresail.model.shards import corrections_of, local, shard
from foresail.recipe.shape.hf_config import SpecialIds
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.auxiliary.expert_load import ExpertLoad, open_load
from foresail.train.auxiliary.mtp import choose_trained
from foresail.train.optim.masters import shards_of
from foresail.train.optim.optimizer import AnyOptimizer, build_optimizer
from foresail.train.starting_point import load_model_and_tokenizer
from foresail.train.state_files import Pieces, open_state, share_of, state_paths, write_state
from foresail.world import ONE_PROCESS, World

TRAINER = "trainer"  # folder in a checkpoint: what an exact resume needs besides the policy's weights
OPTIMIZER = "optimizer"  # its files, see `state_files`
WEIGHTS = "weights"  # unrounded, where the exported ones are rounded
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class Learner(Generic[Model]):
    """A model and its optimiser. Without one it is frozen, as a reference: no update, no files.

    `folder`, in a checkpoint, holds the optimiser's state; `save_weights` gets the checkpoint's own path. Weights
    are loaded when the model is made, for that takes less memory than to fill one that is there.
    """

    name: str
    model: Model
    optimizer: AnyOptimizer | None = None
    folder: str = TRAINER
    save_weights: Callable[[Path], None] = lambda checkpoint: None
    expert_load: ExpertLoad | None = None  # where the model has experts

    @property
    def world(self) -> World:
        """The ranks that train it together."""
        return ONE_PROCESS if self.optimizer is None else self.optimizer.gradients.world

    def save(self, checkpoint: Path) -> None:
        """All ranks call it; each writes its own shard."""
        if self.optimizer is not None:
            (checkpoint / self.folder).mkdir(parents=True, exist_ok=True)
            self.save_weights(checkpoint)
            write_state(checkpoint / self.folder, OPTIMIZER, self.optimizer.state(), self.world)

    def load(self, checkpoint: Path) -> None:
        """Load the optimiser's state; with the same number of ranks the run continues bit for bit."""
        assert self.optimizer is not None, "a frozen model has no state to go on from"
        pieces = read_pieces(checkpoint, self.folder, OPTIMIZER)
        try:
            same = len(pieces.files) == self.world.size
            tensors = pieces.of_rank(self.world.rank) if same else self.optimizer.share_of_state(pieces)
            self.optimizer.load_state(tensors)
        except (ValueError, SafetensorError) as error:
            raise ValueError(
                f"{checkpoint / self.folder / OPTIMIZER}.safetensors does not fit: {error}; set optimizer.states "
                "and [lora] as they were, and model.dtype to that of the machine the run came from (auto is "
                f"bfloat16 on CUDA, else float32): foresail resume RUN model.dtype=…; or remove {checkpoint}"
            ) from error


def open_policy(
    recipe: Stage, checkpoint: Path | None, device: torch.device, world: World = ONE_PROCESS, day: str = ""
) -> tuple[Learner[Decoder], Tokenizer]:
    """The checkpoint's policy, or the recipe's starting model. `day`, on which the run began, is for chat
    templates.

    With LoRA the base weights are the starting model's: a checkpoint's have the pairs merged in, and are rounded.
    """
    arrange = arrangement(recipe.lora, world)
    if checkpoint and recipe.lora is None:
        dtype = choose_dtype(recipe.model.dtype, device)
        model = load_model(checkpoint, dtype=dtype, device=device, arrange=arrange, scores=recipe.scores)
        tokenizer = Tokenizer.load(
            checkpoint, options=recipe.model.template_arguments(day)
        )  # it has the recipe's template
        if state_paths(checkpoint / TRAINER, WEIGHTS):
            load_exact_weights(model, checkpoint)
    else:
        model, tokenizer = load_model_and_tokenizer(
            recipe.model,
            seed=recipe.run.seed,
            device=device,
            max_length=recipe.max_length,
            arrange=arrange,
            scores=recipe.scores,
            day=day,
        )
        if checkpoint:  # the run's own tokenizer: the model it came from may have changed
            tokenizer = Tokenizer.load(checkpoint, options=recipe.model.template_arguments(day))
    adapters = None
    if recipe.lora is not None:
        adapters = Adapters(model, recipe.lora, base=recipe.model.path, seed=recipe.run.seed)
        if checkpoint:
            adapters.load(checkpoint / TRAINER)
    choose_trained(model, recipe.mtp_settings)
    if recipe.recompute:
        model.recompute_blocks()
    policy = Learner(
        name="policy",
        model=model,
        optimizer=build_optimizer(model, recipe.optimizer, recipe.run.seed, world),
        save_weights=partial(
            save_policy, model, tokenizer, adapters, dtype=saved_dtype(recipe, model), world=world
        ),
        expert_load=open_load(model, recipe.router),
    )
    if checkpoint:
        policy.load(checkpoint)
    return policy, tokenizer


def arrangement(lora: parts.Lora | None, world: World) -> Arrange | None:
    """With several ranks: LoRA and shards, which are set up before the model's memory is allocated."""
    if world.mesh is None:
        return None

    def arrange(model: Decoder) -> None:
        if lora is not None:
            add_pairs(model, lora)
        shard(model, world.mesh)

    return arrange


def saved_dtype(recipe: Stage, model: Decoder) -> torch.dtype:
    name = recipe.checkpoints.dtype
    return model.dtype if name == "auto" else choose_dtype(name, model.device)


def save_policy(
    model: Decoder,
    tokenizer: Tokenizer,
    adapters: Adapters | None,
    checkpoint: Path,
    *,
    dtype: torch.dtype | None = None,
    world: World = ONE_PROCESS,
) -> None:
    """The weights in `dtype`; for a resume also the LoRA pairs, or the unrounded weights where `dtype` rounds."""
    save_weights(model, tokenizer, checkpoint, dtype, world)
    if adapters is not None:
        adapters.save(checkpoint / TRAINER)
    elif dtype not in (None, model.dtype, torch.float32):
        save_exact_weights(model, checkpoint, world)


def save_exact_weights(model: Decoder, checkpoint: Path, world: World) -> None:
    exact = {name: local(weight).to("cpu", copy=True) for name, weight in model.named_parameters()}
    write_state(checkpoint / TRAINER, WEIGHTS, exact, world)


@torch.no_grad()
def load_exact_weights(model: Decoder, checkpoint: Path) -> None:
    pieces, weights = read_pieces(checkpoint, TRAINER, WEIGHTS), dict(model.named_parameters())
    corrections = corrections_of(model)  # every rank has written them whole

    def pieces_of(name: str) -> list[Tensor]:
        return pieces[name][:1] if weights.get(name) in corrections else pieces[name]

    sizes = {name: sum(piece.numel() for piece in pieces_of(name)) for name in pieces}
    if sizes != {name: weight.numel() for name, weight in weights.items()}:
        raise ValueError(
            f"{checkpoint / TRAINER / WEIGHTS}.safetensors holds the weights of another model; restore the "
            f"checkpoint, or remove {checkpoint} to resume from the one before it"
        )
    shards = shards_of(model)
    for name, weight in weights.items():
        mine = local(weight)
        mine.copy_(share_of(pieces_of(name), shards[name].offset, mine))


def save_weights(
    model: Decoder,
    tokenizer: Tokenizer,
    directory: Path,
    dtype: torch.dtype | None = None,
    world: World = ONE_PROCESS,
) -> None:
    """A directory that transformers and vLLM can load."""
    tokenizer = tokenizer.padding_apart() if model.shape.scores else tokenizer
    special = SpecialIds(bos=tokenizer.bos_id, eos=tokenizer.eos_ids, pad=tokenizer.pad_id)
    save_model(model, directory, special=special, dtype=dtype, world=world)
    if world.rank == 0:
        tokenizer.save(directory)


def read_pieces(checkpoint: Path, folder: str, stem: str) -> Pieces:
    try:
        return open_state(checkpoint / folder, stem)
    except ValueError as error:
        raise ValueError(f"{error}; remove {checkpoint} to resume from the checkpoint before it") from error


def read_state(checkpoint: Path, file: str) -> dict[str, Tensor]:
    path = checkpoint / file
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); remove {checkpoint} to resume from the checkpoint before it"
        ) from error
