"""One stage of pretraining, a table of the recipe's [[stages]], and the number of its updates.

All is counted in tokens, so that another batch size changes no schedule. A row counts as `length` tokens even if
packing leaves its end empty: a run's position is then a pure function of its updates.

    rows_per_update(stage, 0) -> 32          # at the beginning of a warm-up of the batch
    locate(stages, position)  -> (1, 8192)   # in the second stage, 8,192 tokens after its beginning
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from foresail.recipe.keys import FilesOrTables, Tables
from foresail.recipe.tables.inputs import default_name
from foresail.recipe.tables.mixture_file import read_mixture
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import SourceName


def whole(value: Any) -> Any:
    """8e12 may be written for 8_000_000_000_000."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


Tokens = Annotated[int, BeforeValidator(whole)]
MAX_GROWING = 100_000  # updates of full size that a batch may take to grow: each is counted by itself


class Corpus(Part):
    """Token shards to train on, as `foresail data tokenize` writes them."""

    source: str = Field(description="folder of token shards")
    name: SourceName | None = Field(None, description="name in metrics; default: the folder's name")
    weight: float | None = Field(
        None, gt=0, description="sampling weight beside the other corpora; default: its number of tokens"
    )
    epochs: int | None = Field(
        None,
        gt=0,
        description="passes over it in the whole run, at most; then only the other corpora are drawn from",
    )

    @property
    def label(self) -> str:
        return self.name or default_name(self.source)


class HeldOutCorpus(Part):
    """Held-out token shards, to measure the loss on."""

    source: str = Field(description="folder of token shards")
    name: SourceName | None = Field(None, description="name in metrics; default: the folder's name")
    tokens: Tokens = Field(
        1_000_000, gt=0, description="tokens to measure on, at most, of documents in a fixed random order"
    )

    @property
    def label(self) -> str:
        return self.name or default_name(self.source)


# TOML has lists only, and a recipe is frozen: hence Strict(False)
Corpora = Annotated[FilesOrTables[Corpus], BeforeValidator(read_mixture)]
HeldOutCorpora = FilesOrTables[HeldOutCorpus]


class PretrainStage(Part):
    """A number of tokens of a mixture, at one length. The learning rate starts where the last stage ended."""

    name: str = Field("", description="name in the log; default: its number")
    data: Corpora = Field(
        description="folder of token shards; or a mixture: tables [[stages.data]], or a file .toml of [[corpus]]"
    )
    tokens: Tokens = Field(gt=0, description="tokens of the stage")
    length: int = Field(
        4096, gt=1, description="sequence length: tokens of a row, into which documents are packed"
    )
    long_share: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of the tokens from long documents, 0.6 in Compass-v2; none: as in the corpora",
    )
    long_from: int | None = Field(
        None, gt=0, description="documents with more tokens are long; default: the length of the stage before"
    )
    rope_theta: float | None = Field(
        None, gt=0, description="RoPE base from this stage on (ABF); default: unchanged"
    )
    batch_tokens: Tokens = Field(gt=0, description="tokens per update, in whole rows")
    batch_start_tokens: Tokens | None = Field(
        None, gt=0, description="batch-size warm-up: tokens of the first update; default: one row"
    )
    batch_warmup_tokens: Tokens = Field(
        0, ge=0, description="batch-size warm-up: tokens over which the batch grows linearly"
    )
    lr: float | None = Field(None, gt=0, description="peak learning rate; default: optimizer.lr")
    warmup_tokens: Tokens = Field(
        0,
        ge=0,
        description="warm-up: tokens until the peak learning rate, from that of the stage before, or from 0",
    )
    decay: Literal["constant", "linear", "cosine", "sqrt"] = Field(
        "constant", description="learning-rate decay at the end of the stage; sqrt: 1 - sqrt, fast first"
    )
    decay_tokens: Tokens | None = Field(
        None, gt=0, description="tokens of the decay; default: all after the warm-up"
    )
    final_lr: float = Field(0.0, ge=0, description="learning rate at the end of the decay")

    @property
    def rows(self) -> int:
        """Rows of a full update."""
        return self.batch_tokens // self.length

    def mistakes(self, lr: float) -> Iterator[str]:
        """Mistakes of the stage at its rate; the caller puts the stage's place before each."""
        if not self.data:
            yield "data names no corpus; set it to a folder of token shards, or add a table [[stages.data]]"
        if self.batch_tokens < self.length:
            yield f"batch_tokens {self.batch_tokens} holds no row of {self.length}; set {self.length} or more"
        if self.batch_start_tokens is not None:
            if not self.batch_warmup_tokens:
                yield "batch_start_tokens is for a growing batch; set batch_warmup_tokens as well"
            if self.batch_start_tokens > self.batch_tokens:
                yield (
                    f"batch_start_tokens {self.batch_start_tokens} exceeds batch_tokens {self.batch_tokens}; the "
                    "batch grows from the one to the other"
                )
        growing = min(self.tokens, self.batch_warmup_tokens)
        if self.rows and growing > MAX_GROWING * self.rows * self.length:
            yield (
                f"batch_warmup_tokens {self.batch_warmup_tokens:,} are more than {MAX_GROWING:,} updates of "
                f"{self.batch_tokens:,} tokens; lower it, or raise batch_tokens"
            )
        if self.decay == "constant":
            if self.decay_tokens is not None or self.final_lr:
                yield (
                    'decay_tokens and final_lr are for a learning rate that decays; set decay = "cosine", '
                    "for example"
                )
        elif self.final_lr > lr:
            yield f"final_lr {self.final_lr:g} is above its lr {lr:g}; set it lower, or lr higher"
        if self.warmup_tokens + (self.decay_tokens or 0) > self.tokens:
            yield (
                f"warmup_tokens and decay_tokens are {self.warmup_tokens + (self.decay_tokens or 0):,} together, "
                f"more than its {self.tokens:,} tokens; lower them"
            )


Stages = Tables[PretrainStage]


class StageLength(NamedTuple):
    """Updates of a stage, and its tokens in whole updates."""

    steps: int
    tokens: int


def rows_per_update(stage: PretrainStage, done: int) -> int:
    """Rows of the update after `done` tokens of the stage."""
    if done >= stage.batch_warmup_tokens:
        return stage.rows
    first = max(1, (stage.batch_start_tokens or 0) // stage.length)
    return first + (stage.rows - first) * done // stage.batch_warmup_tokens


@lru_cache(maxsize=64)
def span(stage: PretrainStage) -> StageLength:
    """The last update is a whole one, too. 100 tokens in updates of 4 rows of 8: StageLength(4, 128)."""
    steps = done = 0
    while done < min(stage.tokens, stage.batch_warmup_tokens):
        done += rows_per_update(stage, done) * stage.length
        steps += 1
    each = stage.rows * stage.length
    more = max(0, -(-(stage.tokens - done) // each))
    return StageLength(steps + more, done + more * each)


class Where(NamedTuple):
    stage: int
    done: int


def locate(stages: Sequence[PretrainStage], position: int) -> Where:
    """Which stage comes after `position` tokens of the run, and how many of its own are done."""
    for number, stage in enumerate(stages):
        if position < span(stage).tokens:
            return Where(number, position)
        position -= span(stage).tokens
    return Where(len(stages), 0)


def rate_of(stage: PretrainStage, lr: float) -> float:
    """The learning rate at its height; `lr` is the recipe's."""
    return lr if stage.lr is None else stage.lr
