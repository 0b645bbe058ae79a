"""The table of a model that answers questions: who makes data, translates, or judges.

[answerer]                                            [answerer]
checkpoint = "runs/sft"                               endpoint = "http://localhost:8000/v1"
temperature = 0.7                                     model = "qwen3-8b"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.tables.part import CheckedPart

BESIDE_ANSWERS = ("endpoint", "key_env", "parallel", "patience", "device")


class Answerer(CheckedPart):
    """A checkpoint in the native engine, or a server with OpenAI's API."""

    checkpoint: CheckpointPath | None = Field(None, description="folder of a checkpoint or of a run")
    endpoint: str | None = Field(None, description="address of a server, such as http://HOST:8000/v1")
    model: str = Field("", description="the model's name at the endpoint")
    key_env: str | None = Field(None, description="environment variable that holds the server's key")
    parallel: int = Field(16, ge=1, description="requests at a time")
    patience: float = Field(
        600.0, ge=0, description="seconds that a server which does not answer is waited for"
    )
    temperature: float = Field(0.0, ge=0, description="0: greedy")
    top_p: float = Field(1.0, gt=0, le=1, description="nucleus sampling; 1: all tokens")
    max_new_tokens: int = Field(1024, ge=1, description="of an answer, thinking included")
    thinking: bool | None = Field(
        None, description="the chat template's switch, of a checkpoint; default: as it has it"
    )
    seed: int = Field(0, ge=0, description="of sampling; every question has noise of its own")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="of a checkpoint")
    batch_invariant: bool = Field(
        True, description="of a checkpoint: an answer does not depend on what is asked beside it; slower"
    )

    def mistakes(self) -> Iterator[str]:
        if (self.checkpoint is None) == (self.endpoint is None):
            yield 'name who answers: checkpoint = "FOLDER", or endpoint = "URL" with model = "NAME"'
        if self.endpoint is not None and not self.model:
            yield 'endpoint needs model = "…", the name that the server gives the model'
        if self.endpoint is not None and not self.endpoint.startswith(("http://", "https://")):
            yield f'endpoint = "{self.endpoint}" is no address; it begins with http:// or https://'

    def answers_by(self) -> dict[str, Any]:
        """What an answer depends on; a server may move, and another key or machine gives no other answers."""
        return self.model_dump(mode="json", exclude={*BESIDE_ANSWERS})

    @property
    def name(self) -> str:
        """For provenance: who answered."""
        return self.model or str(self.checkpoint)
