"""What passes between rooms: plain records, no behaviour beyond reading them.

torch is imported for type checkers only, so recipe checks and `--help` stay instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["correct", "wrong", "unparsable", "timeout", "crashed", "ungradable", "scored"]
Finish = Literal["stop", "length", "chunk", "cancelled"]

# A failure is never a score: samples with these statuses say nothing about the model.
FAILURES: frozenset[Status] = frozenset({"timeout", "crashed", "ungradable"})


class RunStopped(Exception):
    """A run cannot go on, for a reason its user can mend; the message says how."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation.

    `extra` is what else a chat template may read of it, such as tool_calls; `train` says whether it has a loss,
    where its row does.
    """

    role: Role
    content: str
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    train: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A prompt and the answer a verifier checks responses against."""

    id: str
    prompt: tuple[Message, ...]
    answer: str
    source: str = "unknown"  # as the data calls it
    dataset: str = field(default="", compare=False)  # the recipe's name of the table it comes from
    extra: Mapping[str, Any] = field(default_factory=dict)
    level: int | None = None  # of difficulty, 1 (easy) to 5 (hard), where somebody has said it
    thinking: bool | None = None  # the chat template's switch; None: as the template has it


@dataclass(frozen=True, kw_only=True)
class PreferencePair:
    """Two answers to one prompt, the first preferred. `margin`: by how much, where the data says it.

    An answer is one assistant message, or several messages of which the last is the assistant's. `tools` is what
    the chat template is told of.
    """

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    margin: float | None = None
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """An answer to a prompt that somebody found good (`desirable`) or bad, without another one beside it; its
    messages as in `PreferencePair`.
    """

    prompt: tuple[Message, ...]
    answer: tuple[Message, ...]
    desirable: bool
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a grader says of one response. `detail` tells what was compared, for the log.

    `scored` is neither right nor wrong: the recipe has reward terms and no main grader. `terms` are their scores by
    name, those left out that do not apply. `extra` is what reward functions say besides, for the log; `metrics` is
    what they want averaged over a step.
    """

    status: Status
    score: float
    detail: str = ""
    terms: Mapping[str, float] = field(default_factory=dict, hash=False)
    extra: Mapping[str, float | str | None] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)


def final_text(response: str) -> str | None:
    """What follows the thinking: final_text("<think>3?</think> 4") -> " 4"; None while it has not ended."""
    if "<" not in response:
        return response
    final = response.rpartition("</think>")[2]
    return None if "<think>" in final else final


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What the world said, such as a tool's output, and what the model answered."""

    observation: str
    response: str
    reward: float | None = None  # what the world gave for the response, where it does


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """An episode as text, turn by turn, for graders. The first observation is empty: the problem has the prompt."""

    turns: tuple[Turn, ...]
    outcome: str | None = None  # what a program that owns its loop said at its end

    @property
    def response(self) -> str:
        """Where a final answer stands: a program's outcome, else the last turn's response."""
        return self.turns[-1].response if self.outcome is None else self.outcome


def single_turn(response: str) -> Trajectory:
    """The trajectory of a problem that was answered at once."""
    return Trajectory(turns=(Turn(observation="", response=response),))


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One episode as flat token lists of equal length.

    A turn is what the world says (the prompt, a tool's output: `loss_mask` 0), then what the model answers (1);
    `turns` has each token's, from 0. `forced` are places in an answer that were put in and not drawn (where a
    budget closed its thinking): 0 in the mask. `logprobs` and `versions` (the policy version that sampled the
    token) are 0 outside the mask. `side` is named data for replay, each as long as `ids`; None where an
    engine gave none. Text is never tokenised again: `ids` is what the model saw and what the trainer will see.

    An episode whose program rewrote its history has several such records: this one, and `branches`.
    """

    ids: list[int]
    loss_mask: list[int]
    logprobs: list[float]
    versions: list[int]
    turns: list[int]
    finish: Finish
    side: Mapping[str, list[Any]] = field(default_factory=dict)
    turn_rewards: tuple[float | None, ...] = ()  # what the world gave for each turn, where it does
    branches: tuple[Sample, ...] = ()  # other records of the same episode, which have its advantage
    outcome: str | None = None  # what a program said at its end, graded in the place of the last response
    forced: list[int] = field(default_factory=list)

    @property
    def records(self) -> tuple[Sample, ...]:
        return (self, *self.branches)

    @property
    def num_response_tokens(self) -> int:
        """Of the whole episode."""
        return sum(sum(record.loss_mask) for record in self.records)


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
    messages. `observed` is 1 for what an environment said, where that is to be predicted. `side` is named data for
    replay (router choices, say), as numbers or lists of numbers.
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
    observed: list[int] | None = None
    side: Mapping[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrainPair:
    """A preference pair as the trainer wants it: two whole sequences, each the prompt and one answer to it.

    Their loss masks cover the answers alone. `ref_logprobs`: the reference's log-probabilities of the chosen and of
    the rejected answer, summed over their tokens, where a loss needs them.
    """

    name: str = ""
    chosen: TrainSequence
    rejected: TrainSequence
    margin: float | None = None
    ref_logprobs: tuple[float, ...] | None = None

    @property
    def answers(self) -> tuple[TrainSequence, ...]:
        """What the loss is about."""
        return (self.chosen, self.rejected)

    @property
    def compared(self) -> tuple[TrainSequence, ...]:
        """What the reference is asked about."""
        return self.answers

    @property
    def ids(self) -> list[int]:
        """Those of the longer sequence, which a limit on lengths is about."""
        return max(self.chosen.ids, self.rejected.ids, key=len)


@dataclass(frozen=True, kw_only=True)
class TrainAnswer:
    """An answer that was judged alone, as the trainer wants it: the prompt and the answer, which has the loss.

    `mismatched`, for a loss that asks how far the policy is from the reference anyway: the prompt and an answer to
    another one. `ref_logprobs`: the reference's log-probability of the answer, and then of the mismatched one.
    """

    name: str = ""
    answer: TrainSequence
    desirable: bool
    mismatched: TrainSequence | None = None
    ref_logprobs: tuple[float, ...] | None = None

    @property
    def answers(self) -> tuple[TrainSequence, ...]:
        return (self.answer,)

    @property
    def compared(self) -> tuple[TrainSequence, ...]:
        return self.answers if self.mismatched is None else (self.answer, self.mismatched)

    @property
    def ids(self) -> list[int]:
        return self.answer.ids


Preference: TypeAlias = TrainPair | TrainAnswer


@dataclass(frozen=True, kw_only=True)
class PackedAnswers:
    """Which segments of a micro-batch are whose answers.

    Legend: P pairs, or answers judged alone; K answers of each: of a pair the chosen, then the rejected one.
    `weights_P` makes every loss of them a plain sum: it is their share in the whole update. Margins are 0 where the
    data has none, `desirable_P` is of answers judged alone. `ref_logprobs_PK` are the reference's, summed over the
    tokens of each answer.
    """

    segments_PK: Tensor
    weights_P: Tensor
    margins_P: Tensor
    desirable_P: Tensor | None = None
    ref_logprobs_PK: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class BatchSlice:
    """What one of several ranks computes of a micro-batch that they share: these of its T tokens, and the losses
    that these predict, by their places in M. `group` is PyTorch's process group of the ranks.

    Of 8 tokens on two ranks the second has `tokens` slice(4, 8); losses with sources [1, 5, 6] are 1 and 2 there.
    """

    tokens: slice
    own_R: Tensor
    group: Any


@dataclass(frozen=True, kw_only=True)
class PackedObserved:
    """The O tokens of a micro-batch that an environment said: their places in T, those that predict them, and which
    of them this rank reads where several share the batch. The whole update has `of_update` such tokens, and
    `tokens_of_update` with a loss.
    """

    targets_O: Tensor
    sources_O: Tensor
    own_R: Tensor | None = None
    of_update: int = 0
    tokens_of_update: int = 0


@dataclass(frozen=True, kw_only=True)
class PackedBatch:
    """Segments packed end to end: a micro-batch without padding.

    Legend: T tokens, S segments, M tokens with a loss.
    A segment is a sequence, or a prompt that several sequences share, or what one of these says after it: then
    `parents_S` has the prompt's number, else -1. `starts_S1`, on the host as well, holds the S+1 offsets.
    `targets_M` are the places in T that carry a loss, `sources_M` those that predict them: just before, or at the
    end of the prompt. `sequence_M` is the target's segment.
    `weights_M` makes every loss a plain sum: it is this token's share in the whole update.
    With a critic a token has a reward (the last one its sample's, others none), the value that was expected
    before it, and the return it turned out to bring. `fresh_M`, where samples are carried over, is 0 for tokens
    that older weights drew. `entropy_M` is that of what the tokens were drawn from, by a pass before the update,
    and `top_entropy_M` tells which tokens learn, where that goes by it. `side` holds named data of all T tokens,
    along the first axis; -1 is unknown.
    `observed` is what an environment said, where that is to be predicted as well.
    `answers`, where the sequences are answers to learn preferences from, tells whose they are.
    Where ranks compute it together, `slice` is what this rank does. T is then a multiple of their number: padding
    stands behind the last segment, as a part of it.
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
    entropy_M: Tensor | None = None
    top_entropy_M: Tensor | None = None
    side: Mapping[str, Tensor] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    observed: PackedObserved | None = None
    answers: PackedAnswers | None = None
    slice: BatchSlice | None = None
