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
    """A run cannot go on, for a reason that its user can fix; the message says how."""


class JudgeAway(RunStopped):
    """The server that judges stays away, and nothing else is wrong: what was learned can be saved."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation.

    `extra` holds other fields that a chat template may read, such as tool_calls. `train` says whether the message
    has a loss; None: the loss rule decides.
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
    source: str = "unknown"  # the name in the data's own column
    dataset: str = field(default="", compare=False)  # the name of its [[data]] table in the recipe
    extra: Mapping[str, Any] = field(default_factory=dict)
    level: int | None = None  # of difficulty, 1 (easy) to 5 (hard), where the data states it
    thinking: bool | None = None  # the chat template's switch; None: as the template has it


@dataclass(frozen=True, kw_only=True)
class PreferencePair:
    """Two answers to one prompt, the first preferred. `margin`: by how much, where the data states it.

    An answer is one assistant message, or several messages of which the last is the assistant's. `tools` are the
    tool definitions that the chat template prints.
    """

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    margin: float | None = None
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """An answer to a prompt, rated good (`desirable`) or bad on its own. Messages are as in `PreferencePair`."""

    prompt: tuple[Message, ...]
    answer: tuple[Message, ...]
    desirable: bool
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A grader's result for one response. `detail` says what was compared, for the log.

    The status `scored` is neither right nor wrong: the recipe has reward terms and no main grader. `terms` holds
    the scores of the reward terms that apply, by name. `extra` holds further output of reward functions, for the
    log; `metrics` holds values that are averaged over a step.
    """

    status: Status
    score: float
    detail: str = ""
    terms: Mapping[str, float] = field(default_factory=dict, hash=False)
    extra: Mapping[str, float | str | None] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)


def final_text(response: str) -> str | None:
    """The text after the thinking: final_text("<think>3?</think> 4") -> " 4"; None if the thinking has no end."""
    if "<" not in response:
        return response
    final = response.rpartition("</think>")[2]
    return None if "<think>" in final else final


@dataclass(frozen=True, kw_only=True)
class Turn:
    """An observation from the environment, such as a tool's output, and the model's response to it."""

    observation: str
    response: str
    reward: float | None = None  # the environment's reward for the response, if any


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """An episode as text, turn by turn, for graders. The first observation is empty: the problem has the prompt."""

    turns: tuple[Turn, ...]
    outcome: str | None = None  # the final answer of a program that owns its loop

    @property
    def response(self) -> str:
        """The text with the final answer: a program's outcome, else the last turn's response."""
        return self.turns[-1].response if self.outcome is None else self.outcome


def single_turn(response: str) -> Trajectory:
    """The trajectory of an episode with one response."""
    return Trajectory(turns=(Turn(observation="", response=response),))


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One episode as flat token lists of equal length.

    A turn is an observation (the prompt, a tool's output: `loss_mask` 0), then the model's response (1). `turns`
    has the turn of each token, counted from 0. `forced` lists the positions of response tokens that were inserted
    and not sampled (the end of thinking, where its budget ran out); their mask is 0. `logprobs` and `versions`
    (the policy version that sampled the token) are 0 outside the mask. `side` holds named data for replay, each
    list as long as `ids`, with None where the engine recorded nothing. Text is never tokenised again: the trainer
    reads the `ids` that the model sampled.

    If a program rewrote its history, its episode has several records: this one, and `branches`.
    """

    ids: list[int]
    loss_mask: list[int]
    logprobs: list[float]
    versions: list[int]
    turns: list[int]
    finish: Finish
    side: Mapping[str, list[Any]] = field(default_factory=dict)
    turn_rewards: tuple[float | None, ...] = ()  # the environment's reward for each turn, if any
    branches: tuple[Sample, ...] = ()  # other records of the same episode, with the same advantage
    outcome: str | None = None  # a program's final answer, graded instead of the last response
    forced: list[int] = field(default_factory=list)

    @property
    def records(self) -> tuple[Sample, ...]:
        return (self, *self.branches)

    @property
    def num_response_tokens(self) -> int:
        """Sampled tokens of the whole episode."""
        return sum(sum(record.loss_mask) for record in self.records)


@dataclass(frozen=True, kw_only=True)
class Group:
    """All samples of one problem in one step, with their verdicts and rewards in the same order.

    A failed verdict has no reward (None), and its group is not trained on.
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
    """One sequence to train on: flat lists of equal length, one entry per token.

    `advantages[t]` belongs to `ids[t]`, and so on.
    SFT fills `ids` and `loss_mask` only; RL fills `advantages` or, for a critic, `rewards`. `name` is for error
    messages. `fresh` is 0 for tokens that older weights sampled. `observed` is 1 for an environment's tokens, where
    the recipe trains on predicting them. `side` holds named data for replay (router choices, say), as numbers or
    lists of numbers.
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
    """A preference pair to train on: two whole sequences, each the prompt and one answer to it.

    Their loss masks cover the answers alone. `ref_logprobs`: the reference model's log-probabilities of the chosen
    and of the rejected answer, summed over their tokens, if the loss needs them.
    """

    name: str = ""
    chosen: TrainSequence
    rejected: TrainSequence
    margin: float | None = None
    ref_logprobs: tuple[float, ...] | None = None

    @property
    def answers(self) -> tuple[TrainSequence, ...]:
        """The sequences with a loss."""
        return (self.chosen, self.rejected)

    @property
    def compared(self) -> tuple[TrainSequence, ...]:
        """The sequences that the reference model scores."""
        return self.answers

    @property
    def ids(self) -> list[int]:
        """The longer sequence, which counts for a limit on length."""
        return max(self.chosen.ids, self.rejected.ids, key=len)


@dataclass(frozen=True, kw_only=True)
class TrainAnswer:
    """A `JudgedAnswer` to train on: one sequence of the prompt and the answer, which has the loss.

    `mismatched` is the prompt with the answer to another prompt: KTO's loss estimates from such sequences how far
    the policy is from the reference model. `ref_logprobs`: the reference model's log-probability of the answer,
    then of the mismatched one.
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
    """Which segments of a micro-batch are the answers of which preference pair.

    Legend: P pairs, or judged answers; K answers of each: for a pair the chosen, then the rejected one.
    `weights_P` is the share of each pair in the whole update, so that every loss is a plain sum. Margins are 0
    where the data has none. `desirable_P` is for judged answers. `ref_logprobs_PK` are the reference model's,
    summed over the tokens of each answer.
    """

    segments_PK: Tensor
    weights_P: Tensor
    margins_P: Tensor
    desirable_P: Tensor | None = None
    ref_logprobs_PK: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class BatchSlice:
    """One rank's part of a micro-batch that several ranks compute: a slice of its T tokens, and the losses that
    these tokens predict, as indices into M. `group` is PyTorch's process group of the ranks.

    Example: 8 tokens on two ranks. The second rank has `tokens` slice(4, 8). For losses with sources [1, 5, 6] its
    `own_R` is [1, 2].
    """

    tokens: slice
    own_R: Tensor
    group: Any


@dataclass(frozen=True, kw_only=True)
class PackedObserved:
    """The O tokens of a micro-batch that come from an environment: their positions in T, the positions that predict
    them, and which of them this rank reads where several ranks share the batch. The whole update has `of_update`
    such tokens, and `tokens_of_update` with a policy loss.
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
    A segment is a whole sequence, a prompt that several sequences share, or the continuation of such a prompt;
    then `parents_S` has the index of the prompt's segment, else -1. `starts_S1` holds the S+1 offsets. `targets_M`
    are the positions in T with a loss, `sources_M` those that predict them: just before, or at the end of the
    prompt. `sequence_M` is the target's segment.
    `weights_M` is the token's share in the whole update, so that every loss is a plain sum. With a critic a token
    has a reward (the sample's, at its last token; others 0), a value (the return expected before it) and a return.
    `fresh_M`, where samples are carried over, is 0 for tokens that older weights sampled. `entropy_M` is the
    entropy of the distributions that the tokens were sampled from, by a pass before the update; `top_entropy_M`
    says which tokens have enough entropy to train on. `side` holds named data of all T tokens, along the first
    axis; -1 is unknown.
    `observed`: the environment's tokens, where the recipe trains on predicting them.
    `answers`: which segments form a preference pair.
    `slice`: this rank's part, where several ranks compute the batch together. T is then a multiple of their number:
    the last segment is padded.
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
