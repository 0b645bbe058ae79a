"""What passes between rooms: plain records, no behaviour beyond reading them.

torch is imported for type checkers only, so recipe checks and `--help` stay instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import Tensor

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["correct", "wrong", "unparsable", "timeout", "crashed", "ungradable"]
Finish = Literal["stop", "length", "chunk", "cancelled"]

# A failure is never a score: samples with these statuses say nothing about the model.
FAILURES: frozenset[Status] = frozenset({"timeout", "crashed", "ungradable"})


class RunStopped(Exception):
    """A run cannot go on, for a reason its user can mend; the message says how."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A prompt and the answer a verifier checks responses against."""

    id: str
    prompt: tuple[Message, ...]
    answer: str
    source: str = "unknown"
    extra: Mapping[str, Any] = field(default_factory=dict)
    level: int | None = None  # of difficulty, 1 (easy) to 5 (hard), where somebody has said it


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a grader says of one response. `detail` tells what was compared, for the log."""

    status: Status
    score: float
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One response as flat token lists of equal length; the prompt is the span where `loss_mask` is 0.

    `logprobs` and `versions` (the policy version that sampled the token) are 0 outside the mask.
    Text is never tokenised again: `ids` is what the model saw and what the trainer will see.
    """

    ids: list[int]
    loss_mask: list[int]
    logprobs: list[float]
    versions: list[int]
    turns: list[int]
    finish: Finish

    @property
    def num_response_tokens(self) -> int:
        return sum(self.loss_mask)


@dataclass(frozen=True, kw_only=True)
class Group:
    """All samples of one problem in one step, with their verdicts and rewards in the same order.

    A failed verdict has no reward (None): nothing can be learned from such a group.
    """

    problem: Problem
    samples: tuple[Sample, ...]
    verdicts: tuple[Verdict, ...]
    rewards: tuple[float | None, ...]

    @property
    def failed(self) -> bool:
        return any(reward is None for reward in self.rewards)

    @property
    def pass_rate(self) -> float:
        return sum(verdict.status == "correct" for verdict in self.verdicts) / len(self.verdicts)


@dataclass(frozen=True, kw_only=True)
class TrainSequence:
    """One sequence as the trainer wants it: flat lists of equal length, one entry per token.

    Entries describe the token at their own index: `advantages[t]` belongs to `ids[t]`.
    SFT fills `ids` and `loss_mask` only, RL either `advantages` or, for a critic, `rewards`. `name` is for error
    messages.
    """

    name: str = ""
    ids: list[int]
    loss_mask: list[int]
    advantages: list[float] | None = None
    rewards: list[float] | None = None
    old_logprobs: list[float] | None = None
    rollout_logprobs: list[float] | None = None
    ref_logprobs: list[float] | None = None
    fresh: list[int] | None = None


@dataclass(frozen=True, kw_only=True)
class PackedBatch:
    """Segments laid end to end: a micro-batch without padding.

    Legend: T tokens, S segments, M tokens with a loss.
    A segment is a sequence, or a prompt that several sequences share, or what one of these says after it: then
    `parents_S` has the prompt's number, else -1. `starts_S1`, on the host as well, holds the S+1 offsets.
    `targets_M` are the places in T that carry a loss, `sources_M` those that predict them: just before, or at the
    end of the prompt. `sequence_M` is the target's segment.
    `weights_M` makes every loss a plain sum: it is this token's share in the whole update.
    With a critic a token has a reward (the last one its sample's, others none), the value that was expected
    before it, and the return it turned out to bring. `fresh_M`, where samples are carried over, is 0 for tokens
    that older weights drew.
    """

    ids_T: Tensor
    positions_T: Tensor
    starts_S1: Tensor
    targets_M: Tensor
    sources_M: Tensor
    sequence_M: Tensor
    weights_M: Tensor
    parents_S: Tensor | None = None
    advantages_M: Tensor | None = None
    rewards_M: Tensor | None = None
    values_M: Tensor | None = None
    returns_M: Tensor | None = None
    old_logprobs_M: Tensor | None = None
    rollout_logprobs_M: Tensor | None = None
    ref_logprobs_M: Tensor | None = None
    fresh_M: Tensor | None = None
    names: tuple[str, ...] = ()
