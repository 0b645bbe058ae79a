"""A tokenizer recipe: groups of languages, and the vocabulary that they share.

out = "tokenizers/sea-64k"
vocab_size = 65536

[[group]]
name = "sea"
files = ["text/id.jsonl.xz", "text/th/*.parquet"]
vocab_size = 40000

[[group]]
name = "english"
files = ["text/en.jsonl.xz"]
vocab_size = 20000
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from foresail.recipe.keys import Tables
from foresail.recipe.tables.part import Part

Names = Annotated[tuple[str, ...], Strict(False)]


class Group(Part):
    """Languages that share one sub-tokenizer."""

    name: str = Field(description="what reports call it")
    files: Names = Field(min_length=1, description="texts: JSONL, parquet, text; folders and globs too")
    vocab_size: int = Field(gt=0, description="its share of the vocabulary; shares are scaled to the whole")
    weights: tuple[Annotated[float, Field(gt=0, le=100)], ...] = Field(
        (),
        strict=False,
        description="how often the texts of each entry of files count: 0.25, every fourth text",
    )
    weight: float = Field(1.0, gt=0, le=100, description="training jointly: how often all its texts count")
    max_megabytes: float | None = Field(None, gt=0, description="at most so much text of each file")

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.weights and len(self.weights) != len(self.files):
            raise ValueError(
                f"group {self.name!r} has {len(self.files)} files and {len(self.weights)} weights; "
                "give one for each"
            )
        return self

    @property
    def weighted_files(self) -> list[tuple[str, float]]:
        """Each entry of `files`, and how often its texts count."""
        return [*zip(self.files, self.weights or [1.0] * len(self.files), strict=True)]


class Superwords(Part):
    """Tokens of several words, from a second stage without the cut at blanks."""

    tokens: int = Field(gt=0, description="so many of the vocabulary, at the expense of the groups")
    max_characters: int = Field(32, gt=1, description="none is longer")
    megabytes: float = Field(2.0, gt=0, description="text of each group that the second stage sees")


class TokenizerRecipe(Part):
    """What `foresail tokenizer train` reads."""

    out: str = Field(description="directory to write")
    vocab_size: int = Field(65_536, gt=0, description="tokens, special ones included; exactly so many")
    multiple_of: int = Field(1, gt=0, description="round vocab_size down to a multiple, such as 128")
    training: Literal["merged", "joint"] = Field(
        "merged", description="merged: a sub-tokenizer for each group, then one of all; joint: of all texts"
    )
    max_piece_characters: int = Field(16, gt=1, description="no token is longer")
    character_coverage: float = Field(
        0.9995, gt=0, le=1, description="share of characters that are tokens; the others are written as bytes"
    )
    chat: Literal["hybrid", "hybrid-short", "none"] = Field(
        "hybrid", description="chat template and its tokens: hybrid is ChatML with thinking"
    )
    special_tokens: Names = Field((), description="further control tokens")
    whole_tokens: Names = Field(
        ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        description="texts that are never split",
    )
    superwords: Superwords | None = Field(
        None, description="tokens of several words; without it there are none"
    )
    group: Tables[Group] = Field((), description="languages with a sub-tokenizer of their own")

    @model_validator(mode="after")
    def check(self) -> Self:
        if not self.group:
            raise ValueError('group is missing; add [[group]] with name, files = ["…"] and vocab_size')
        names = [group.name for group in self.group]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"group {twice[0]!r} is there twice; give each group a name of its own")
        if self.superwords is not None and self.superwords.tokens >= self.size:
            raise ValueError(
                f"superwords.tokens {self.superwords.tokens} fill all of vocab_size {self.size}; lower them"
            )
        if self.size == 0:
            raise ValueError(f"vocab_size {self.vocab_size} is below multiple_of; raise it")
        return self

    @property
    def size(self) -> int:
        """The vocabulary's exact size."""
        return self.vocab_size - self.vocab_size % self.multiple_of
