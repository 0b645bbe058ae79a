"""The reference model, and its log-probabilities of all answers: computed once and cached, or at every step.

    trainer.reference = open_reference(trainer)
    pairs = compared(trainer, pairs)             # with its log-probabilities
    cached = CachedLogprobs.open(folder, recipe)   # those in the run's folder

The cache's key of a pair, or of an answer judged alone, is a checksum of its tokens, so changed data is scored
again. Cached numbers stay valid if the reference's files go; files that are read again must be unchanged.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from foresail.data.preferences.mixture import Entry
from foresail.model.decoder import Decoder
from foresail.model.lora import base_of
from foresail.model.shards import full_weight
from foresail.model.weights import tensor_checksum
from foresail.recipe.stages.online_dpo import OnlineDpo
from foresail.recipe.stages.preference_stage import PreferenceStage
from foresail.records import Preference, TrainSequence
from foresail.runlog.atomic import write_atomically
from foresail.train.references.frozen import open_frozen
from foresail.train.trainer import Trainer
from foresail.train.update.scoring import Score, scorer

FILE = "reference.safetensors"
KEY_BYTES = 16
Logprobs = tuple[float, ...]  # of each sequence that is compared


def open_reference(trainer: Trainer[Any]) -> Decoder:
    """The starting model, or another one. Before the first update it is the policy itself; with LoRA it is there
    below the pairs.
    """
    recipe, path = trainer.recipe, trainer.recipe.reference.path
    if path is None and trainer.start is None and recipe.reference.kept:
        return trainer.policy.model
    if path is None and recipe.lora is not None and trainer.world.size == 1:
        return base_of(trainer.policy.model)
    return open_frozen(trainer, path)


def name_reference(recipe: PreferenceStage | OnlineDpo) -> str:
    return recipe.reference.path or recipe.model.path or "the fresh model"


def hold_reference(trainer: Trainer[Any]) -> str:
    """Open the reference on every rank for the rest of the run; its checksum."""
    trainer.reference = open_reference(trainer)
    return name_weights(trainer.reference)


def release_reference(trainer: Trainer[Any]) -> None:
    trainer.reference = None


def ask_reference(trainer: Trainer[Any], preferences: Sequence[Preference]) -> list[Logprobs]:
    assert trainer.reference is not None
    return score_compared(scorer(trainer, trainer.reference), preferences)


def compared(trainer: Trainer[Any], preferences: Sequence[Entry]) -> Sequence[Entry]:
    """With the reference's log-probabilities, where they are not cached."""
    if trainer.reference is None:
        return preferences
    return with_reference(preferences, ask_reference(trainer, preferences))


def score_compared(score: Score, preferences: Sequence[Preference]) -> list[Logprobs]:
    """The log-probabilities of each preference's sequences; ranks compute a share each, and get all."""
    sequences = [sequence for one in preferences for sequence in one.compared]
    sums = iter(sum_scores(score, sequences))
    return [tuple(next(sums) for _ in one.compared) for one in preferences]


def sum_scores(score: Score, sequences: Sequence[TrainSequence]) -> list[float]:
    """The log-probability of each, summed over its tokens with a loss."""
    return [float(logprobs_T.nansum()) for logprobs_T in score(sequences)]


def with_reference(preferences: Sequence[Entry], logprobs: Sequence[Logprobs]) -> list[Entry]:
    return [
        replace(one, ref_logprobs=own_logprobs)
        for one, own_logprobs in zip(preferences, logprobs, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class CachedLogprobs:
    """Log-probabilities by a preference's key, with the model's path and a checksum of its weights."""

    model: str
    checksum: str = ""
    known: dict[bytes, Logprobs] = field(default_factory=dict)

    @classmethod
    def of_nothing(cls) -> CachedLogprobs:
        """An empty cache."""
        return cls(model="")

    @classmethod
    def open(cls, folder: Path, recipe: PreferenceStage) -> CachedLogprobs:
        """The folder's cache; empty in a new run."""
        model, path = name_reference(recipe), folder / FILE
        if not path.exists():
            return cls(model=model)
        try:
            with safe_open(path, "pt") as file:
                metadata, keys_NB, logprobs_NK = (
                    file.metadata(),
                    file.get_tensor("keys"),
                    file.get_tensor("logprobs"),
                )
        except (OSError, SafetensorError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); remove it, and it is computed again"
            ) from error
        metadata = metadata or {}
        if metadata.get("content", "") not in ("", digest(keys_NB, logprobs_NK)):  # of earlier versions: ""
            raise ValueError(
                f"{path} is damaged: its checksum is another; remove it, and it is computed again"
            )
        if metadata.get("model") != model:
            raise ValueError(
                f"{path} is of {metadata.get('model')}, and the recipe compares with {model}; set reference.path "
                "as it was, or start a new run from the checkpoint"
            )
        keys = (bytes(row) for row in keys_NB.numpy())
        known = dict(zip(keys, map(tuple, logprobs_NK.tolist()), strict=True))
        return cls(model=model, checksum=metadata.get("checksum", ""), known=known)

    def add(
        self, preferences: Sequence[Preference], logprobs: Sequence[Logprobs], checksum: str
    ) -> CachedLogprobs:
        check_same(self.model, self.checksum, checksum)
        more = dict(zip(map(key_of, preferences), logprobs, strict=True))
        return replace(self, checksum=checksum, known=self.known | more)

    def missing(self, preferences: Sequence[Entry]) -> list[Entry]:
        """Those that are not cached, each once."""
        return list({key: one for one in preferences if (key := key_of(one)) not in self.known}.values())

    def fill(self, preferences: Sequence[Entry]) -> Sequence[Entry]:
        """With their cached log-probabilities; unchanged where the cache is empty."""
        if not self.known:
            return preferences
        return with_reference(preferences, [self.known[key_of(one)] for one in preferences])

    def write(self, folder: Path) -> None:
        keys_NB = torch.frombuffer(bytearray(b"".join(self.known)), dtype=torch.uint8).view(-1, KEY_BYTES)
        tensors = {"keys": keys_NB, "logprobs": torch.tensor([*self.known.values()], dtype=torch.float64)}
        content = digest(tensors["keys"], tensors["logprobs"])
        metadata = {"model": self.model, "checksum": self.checksum, "content": content}
        write_atomically(folder / FILE, lambda temporary: save_file(tensors, temporary, metadata=metadata))


def digest(keys_NB: Tensor, logprobs_NK: Tensor) -> str:
    content = keys_NB.numpy().tobytes() + logprobs_NK.numpy().tobytes()
    return hashlib.blake2b(content, digest_size=KEY_BYTES).hexdigest()


def check_same(model: str, before: str, now: str) -> None:
    """Refuse a reference that is not the one the run began with."""
    if before not in ("", now):
        raise ValueError(
            f"{model} is not the model that this run compares with (checksum {now}, not {before}); bring back "
            "those weights, in the same model.dtype, or start a new run from the checkpoint"
        )


def key_of(preference: Preference) -> bytes:
    """A checksum of the token ids and the masks, which decide its log-probabilities."""
    answers = [(sequence.ids, sequence.loss_mask) for sequence in preference.compared]
    return hashlib.blake2b(repr(answers).encode(), digest_size=KEY_BYTES).digest()


def name_weights(model: Decoder) -> str:
    """A checksum of what predicts the next token: low-rank pairs, which begin at zero, and MTP layers are left out.

    With sharded weights all ranks call it, and all get the result.
    """
    sums = (
        zlib.crc32(name.encode()) * tensor_checksum(full_weight(weight))
        for name, weight in model.named_parameters()
        if not name.startswith("mtp.") and name.rpartition(".")[2] not in ("A", "B")
    )
    return f"{sum(sums) % 2**64:016x}"
