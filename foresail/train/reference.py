"""The model that preference pairs are compared with, and what it says of them: computed once and kept, or anew.

    model = open_reference(trainer)
    pairs = with_reference(pairs, score_pairs(model, pairs, …))
    kept = KeptLogprobs.open(folder, recipe)   # what the run's folder has of it

A pair is known by its tokens, so data that changed is never mistaken for what was scored. What is kept is good
whatever becomes of the reference's files; where these have to be read again, they must be what they were.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from foresail.model.decoder import Decoder
from foresail.model.lora import base_of
from foresail.model.shards import everywhere_whole
from foresail.model.weights import tensor_checksum
from foresail.recipe.dpo import Dpo
from foresail.recipe.online_dpo import OnlineDpo
from foresail.records import TrainPair
from foresail.runlog.atomic import write_aside
from foresail.train.frozen_model import open_frozen
from foresail.train.scoring import score_sequences
from foresail.train.trainer import Trainer
from foresail.world import World

FILE = "reference.safetensors"
KEY_BYTES = 16
Logprobs = tuple[float, float]  # of the chosen and of the rejected answer


def open_reference(trainer: Trainer[Dpo] | Trainer[OnlineDpo]) -> Decoder:
    """The starting model, or another one. Before the first update it is the policy itself; with LoRA it is there
    below the pairs.
    """
    recipe, path = trainer.recipe, trainer.recipe.reference.path
    if path is None and trainer.start is None and recipe.reference.kept:
        return trainer.policy.model
    if path is None and recipe.lora is not None and trainer.world.size == 1:
        return base_of(trainer.policy.model)
    return open_frozen(trainer, path)


def name_reference(recipe: Dpo | OnlineDpo) -> str:
    return recipe.reference.path or recipe.model.path or "the fresh model"


def score_pairs(
    model: Decoder, pairs: Sequence[TrainPair], *, micro_batch_tokens: int, device: torch.device, world: World
) -> list[Logprobs]:
    """The log-probability of both answers of every pair; ranks compute a share each, and get all of it."""
    sequences = [sequence for pair in pairs for sequence in (pair.chosen, pair.rejected)]
    found = score_sequences(
        model,
        sequences,
        temperature=1.0,
        micro_batch_tokens=micro_batch_tokens,
        device=device,
        world=world,
    )
    sums = [float(logprobs_T.nansum()) for logprobs_T in found]
    return list(zip(sums[::2], sums[1::2], strict=True))


def with_reference(pairs: Sequence[TrainPair], logprobs: Sequence[Logprobs]) -> list[TrainPair]:
    return [replace(pair, ref_logprobs=found) for pair, found in zip(pairs, logprobs, strict=True)]


@dataclass(frozen=True, kw_only=True)
class KeptLogprobs:
    """What is known, by the pair's key, and of which model: its place and a checksum of its weights."""

    model: str
    checksum: str = ""
    known: dict[bytes, Logprobs] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, recipe: Dpo) -> KeptLogprobs:
        """What the folder has; nothing, in a new run."""
        model, path = name_reference(recipe), folder / FILE
        if not path.exists():
            return cls(model=model)
        try:
            with safe_open(path, "pt") as file:
                kept, keys_NB, logprobs_N2 = (
                    file.metadata(),
                    file.get_tensor("keys"),
                    file.get_tensor("logprobs"),
                )
        except (OSError, SafetensorError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); remove it, and it is computed again"
            ) from error
        if kept["model"] != model:
            raise ValueError(
                f"{path} is of {kept['model']}, and the recipe compares with {model}; set reference.path as it "
                "was, or start a new run from the checkpoint"
            )
        keys = (bytes(row) for row in keys_NB.numpy())
        known = dict(zip(keys, map(tuple, logprobs_N2.tolist()), strict=True))
        return cls(model=model, checksum=kept["checksum"], known=known)

    def add(self, pairs: Sequence[TrainPair], logprobs: Sequence[Logprobs], checksum: str) -> KeptLogprobs:
        check_same(self.model, self.checksum, checksum)
        more = dict(zip(map(key_of, pairs), logprobs, strict=True))
        return replace(self, checksum=checksum, known=self.known | more)

    def missing(self, pairs: Sequence[TrainPair]) -> list[TrainPair]:
        """Those it knows nothing of, each once."""
        return [*{key: pair for pair in pairs if (key := key_of(pair)) not in self.known}.values()]

    def fill(self, pairs: Sequence[TrainPair]) -> list[TrainPair]:
        return with_reference(pairs, [self.known[key_of(pair)] for pair in pairs])

    def write(self, folder: Path) -> None:
        keys_NB = torch.frombuffer(bytearray(b"".join(self.known)), dtype=torch.uint8).view(-1, KEY_BYTES)
        tensors = {"keys": keys_NB, "logprobs": torch.tensor([*self.known.values()], dtype=torch.float64)}
        metadata = {"model": self.model, "checksum": self.checksum}
        write_aside(folder / FILE, lambda aside: save_file(tensors, aside, metadata=metadata))


def check_same(model: str, before: str, now: str) -> None:
    """That the reference is what it was when the run began."""
    if before not in ("", now):
        raise ValueError(
            f"{model} is not the model that this run compares with (checksum {now}, not {before}); bring back "
            "those weights, in the same model.dtype, or start a new run from the checkpoint"
        )


def key_of(pair: TrainPair) -> bytes:
    """Of all that its log-probabilities hang on."""
    answers = [(sequence.ids, sequence.loss_mask) for sequence in (pair.chosen, pair.rejected)]
    return hashlib.blake2b(repr(answers).encode(), digest_size=KEY_BYTES).digest()


def name_weights(model: Decoder) -> str:
    """A checksum of what predicts the next token: low-rank pairs, which begin at zero, and MTP layers are left out.

    Of sharded weights all ranks ask for it, and each gets it.
    """
    sums = (
        zlib.crc32(name.encode()) * tensor_checksum(everywhere_whole(weight))
        for name, weight in model.named_parameters()
        if not name.startswith("mtp.") and name.rpartition(".")[2] not in ("A", "B")
    )
    return f"{sum(sums) % 2**64:016x}"
