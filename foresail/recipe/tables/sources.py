"""Data sources of a run: one source or a mixture of several, and held-out sets.

    [data]                    [[data]]
    source = "a.jsonl"        source = "a.jsonl"
                              weight = 3

                              [[data]]
                              source = "b.jsonl"
                              weight = 1

In the recipe both are tuples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationError

from foresail.recipe.keys import FilesOrTables, Tables
from foresail.recipe.tables.inputs import count_records, default_name
from foresail.recipe.tables.parts import Part, Problems
from foresail.recipe.tables.reward import ANSWERLESS, GRADERS, Reward
from foresail.recipe.tables.values import SourceName, TooLong, Window, one_text

Weight = Annotated[
    float | None,
    Field(gt=0, description="sampling weight beside the other sources; default: its number of rows"),
]
Epochs = Annotated[
    int | None, Field(gt=0, description="passes over it, at most; then only the other sources are drawn from")
]


class ProblemSource(Problems):
    """Problems with checkable answers."""

    weight: Weight = None
    epochs: Epochs = None


class HeldOut(Problems):
    """Held-out problems."""

    samples: int = Field(
        0, ge=0, description="0: one greedy answer; k: mean@k over k answers, drawn with `sampling`"
    )


def list_no_twice(roles: tuple[str, ...]) -> tuple[str, ...]:
    if not roles or len({*roles}) < len(roles):
        raise ValueError(f'{list(roles)} names none, or one twice; write it like ["assistant"]')
    return roles


def check_held_out(held_out: float) -> float:
    if held_out >= 1 and not held_out.is_integer():
        raise ValueError(
            f"{held_out:g} is neither a share below 1 nor a number of conversations; try 0.05 or 100"
        )
    return held_out


LearntRoles = Annotated[
    tuple[Literal["system", "user", "assistant", "tool", "tool_call"], ...],
    Strict(False),
    BeforeValidator(one_text),
    AfterValidator(list_no_twice),
]


class Chatlog(Part):
    """Conversations, and which of their tokens have a loss."""

    source: str = Field(description="JSONL or parquet of conversations, or a generator with solutions")
    name: SourceName | None = Field(
        None, description="name in metrics; default: the file's or generator's name"
    )
    limit: int | None = Field(None, gt=0, description="use only this many, the first ones")
    too_long: Literal["error", "drop", "split"] = Field(
        "error",
        description="conversations longer than max_length. error: refuse to run; drop: leave them out; split: "
        "split them between turns",
    )
    roles: LearntRoles = Field(
        ("assistant",),
        description="roles whose messages have a loss: assistant, user, system, tool; tool_call: assistant "
        "messages that call tools",
    )
    turns: Literal["all", "last"] = Field(
        "all", description="turns with a loss; last: only those after the last user message"
    )
    thinking: bool | Literal["auto"] | None = Field(
        None,
        description="value of the chat template's enable_thinking; auto: true if the last answer has a thinking "
        "block; default: the row's column of that name, else the template's own default",
    )
    pass_rates: str | None = Field(
        None,
        description="file with a pass rate per problem, as `foresail data grade-difficulty` writes it",
    )
    pass_window: Window | None = Field(
        None,
        description="keep conversations of problems whose pass rate is within these bounds, like [0.1, 0.9]",
    )

    @property
    def label(self) -> str:
        return self.name or default_name(self.source)


class HeldOutPreferences(Part):
    """Held-out preference pairs."""

    source: str = Field(description="JSONL or parquet of pairs: a better and a worse answer to one prompt")
    name: SourceName | None = Field(None, description="name in metrics; default: the file's name")
    limit: int | None = Field(None, gt=0, description="use only this many rows, the first ones")
    too_long: TooLong = Field(
        "error",
        description="pairs with an answer longer than max_length. error: refuse to run; drop: leave them out",
    )

    @property
    def label(self) -> str:
        return self.name or default_name(self.source)


class Preferences(HeldOutPreferences):
    """Preference pairs to train on."""

    weight: Weight = None
    epochs: Epochs = None


AnswerFile = Annotated[
    str, Field(description="JSONL or parquet of answers, each with a label: good (true) or bad (false)")
]
AnswerTooLong = Annotated[
    TooLong,
    Field(
        description="answers longer than max_length with their prompt. error: refuse to run; drop: leave them out"
    ),
]


class HeldOutAnswers(HeldOutPreferences):
    """Held-out judged answers."""

    source: AnswerFile
    too_long: AnswerTooLong = "error"


class Answers(Preferences):
    """Judged answers to train on."""

    source: AnswerFile
    too_long: AnswerTooLong = "error"


class Conversations(Chatlog):
    """Conversations to train on."""

    weight: Weight = None
    epochs: Epochs = None
    held_out: Annotated[float, AfterValidator(check_held_out)] = Field(
        0.0,
        ge=0,
        description="conversations kept from training, to measure the loss on: a share below 1, or a number",
    )


Sources = Tables[ProblemSource]
HeldOuts = Tables[HeldOut]
Chats = FilesOrTables[Conversations]
HeldOutChats = FilesOrTables[Chatlog]
PairSources = Annotated[
    FilesOrTables[Preferences],
    Field(
        description="preference pairs: JSONL or parquet with prompt, chosen and rejected; with chosen and rejected "
        "that share their first messages; or with conversations, chosen and rejected; or tables "
        "[[data]], a mixture"
    ),
]
HeldOutPairs = Annotated[
    FilesOrTables[HeldOutPreferences], Field(description="held-out pairs, or tables [[eval]]")
]
AnswerSources = Annotated[
    FilesOrTables[Answers],
    Field(
        description="judged answers: JSONL or parquet with prompt, completion and label, or messages and label, or "
        "pairs with chosen and rejected; or tables [[data]], a mixture"
    ),
]
HeldOutAnswerSources = Annotated[
    FilesOrTables[HeldOutAnswers],
    Field(description="held-out judged answers, or tables [[eval]]"),
]
PairLength = Annotated[
    int,
    Field(
        gt=1,
        description="tokens of a prompt with one answer, at most; longer ones are an error, unless data.too_long "
        "drops them",
    ),
]

Source: TypeAlias = Problems | Chatlog | HeldOutPreferences
AnyProblems = TypeVar("AnyProblems", bound=Problems)


class Labelled(Protocol):
    @property
    def label(self) -> str: ...


class Weighted(Protocol):
    @property
    def weight(self) -> float | None: ...


def named(key: str, sources: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each source with its place in the recipe: "data" where there is one, else "data#1", "data#2", …"""
    for number, source in enumerate(sources, start=1):
        yield (key if len(sources) == 1 else f"{key}#{number}"), source


def name_mistakes(key: str, sources: Sequence[Labelled]) -> Iterator[str]:
    counts = Counter(source.label for source in sources)
    for place, source in named(key, sources):
        if counts[source.label] > 1:
            yield f'{place} has the name "{source.label}", and so has another source; give each a name of its own'


def weight_mistakes(sources: Sequence[Weighted]) -> Iterator[str]:
    without = [place for place, source in named("data", sources) if source.weight is None]
    if without and len(without) < len(sources):
        yield (
            f"{' and '.join(without)} has no weight and others have one; set weight in every [[data]], or "
            "in none (then each is sampled by its size)"
        )


def window_mistakes(logs: Iterable[tuple[str, Chatlog]]) -> Iterator[str]:
    for place, source in logs:
        if (source.pass_rates is None) != (source.pass_window is None):
            present, other = (
                ("pass_rates", "pass_window") if source.pass_rates else ("pass_window", "pass_rates")
            )
            yield f"{place}.{present} needs {place}.{other}: a file of pass rates, and the window to keep"


def grader_mistakes(key: str, sources: Sequence[Problems], reward: Reward) -> Iterator[str]:
    for place, source in named(key, sources):
        try:
            reward_for(source, reward)
        except ValidationError as error:
            yield from (f"{place}.grader: {detail['ctx']['error']}" for detail in error.errors())


def reward_for(source: Problems, reward: Reward) -> Reward:
    """The recipe's reward with the source's own grader. Scores of a user's function stay as they are."""
    if source.grader is None or source.grader == reward.grader:
        return reward
    settings = {**reward.model_dump(), "grader": source.grader}
    other = Reward.model_validate({"grader": source.grader, "model": reward.model})
    return Reward.model_validate(
        {**settings, "wrong": 0.0, "correct": 1.0} if other.grader not in GRADERS else settings
    )


def as_graded(source: AnyProblems, reward: Reward) -> AnyProblems:
    """The source with the recipe's grader as its own, if that grader needs no answers."""
    inherits = source.grader is None and reward.grader in ANSWERLESS
    return source.model_copy(update={"grader": reward.grader}) if inherits else source


def count_rows(source: Source) -> int | None:
    """Number of rows, within the limit; None if it cannot be counted quickly."""
    count = count_records(source.source)
    return count if count is None or source.limit is None else min(count, source.limit)


def count_all(sources: Sequence[Source]) -> int | None:
    counts = [count_rows(source) for source in sources]
    return None if None in counts else sum(count or 0 for count in counts)


def supply_warnings(
    sources: Sequence[ProblemSource] | Sequence[Conversations] | Sequence[Preferences], drawn: int, unit: str
) -> Iterator[str]:
    """Warns if all sources have limited epochs, and together fewer rows than the run draws."""
    ends = [
        None if (count := count_rows(source)) is None or source.epochs is None else count * source.epochs
        for source in sources
    ]
    if None not in ends and (total := sum(end or 0 for end in ends)) < drawn:
        yield (
            f"the run draws {drawn:,} {unit} and data.epochs allows {total:,}, so it will end early; raise "
            "data.epochs, or lower steps"
        )


def pair_paths(data: Sequence[Preferences], held_out: Sequence[HeldOutPreferences]) -> dict[str, str]:
    """Files of pairs by key: {"data": …, "eval": …}."""
    tables = (*named("data", data), *named("eval", held_out))
    return {place: source.source for place, source in tables}


def paths(tables: Mapping[str, Sequence[Problems]]) -> dict[str, str]:
    """Files and generators by key, sources before examples: {"data.source": …, "eval.source": …}."""
    every = [entry for key, sources in tables.items() for entry in named(key, sources)]
    by_key = {f"{place}.source": source.source for place, source in every}
    return by_key | {f"{place}.examples": s.examples for place, s in every if s.examples is not None}
