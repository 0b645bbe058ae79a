"""Long-context evaluation: every task at every length and depth, answered greedily in one batch.

    answers = ask(model, tokenizer, settings, seed=0)      # one record a prompt
    long_context_metrics(model, tokenizer, settings, seed=0)
    -> {"long_context/niah_single/2048": 0.97, …}           # for a stage's log

A length counts prompt and answer together, as in RULER, so it never exceeds the model's context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from foresail.data.long_context.filler import Filler
from foresail.data.long_context.fit import Encode, TooShort
from foresail.data.long_context.item import Item, recall
from foresail.data.long_context.tasks import WITHOUT_DEPTH, make_item, spread_depths
from foresail.data.long_context.texts import open_filler
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.recipe.tables import parts
from foresail.recipe.tables.long_context import LongContext
from foresail.records import Message
from foresail.rollout.build import build_fleet
from foresail.rollout.checkpoint import choose_engine
from foresail.tokenizer.tokenizer import Tokenizer

ROOM, MARGIN = 1.25, 4  # tokens for an answer: so many times those of a right one, and a few
Cell = tuple[str, int, float | None]  # task, length, depth
PROBES = 3  # right answers by which the room is measured


@dataclass(frozen=True, kw_only=True)
class LongContextQuestion:
    """An item with the length of its cell, and the tokens its answer may have."""

    item: Item
    length: int
    room: int


@dataclass(frozen=True, kw_only=True)
class LongAnswer:
    """A model's answer to one item, and the share of the expected strings in it."""

    task: str
    length: int
    depth: float | None
    answers: tuple[str, ...]
    output: str
    score: float


def long_context_metrics(
    model: Decoder, tokenizer: Tokenizer, settings: LongContext, *, seed: int
) -> dict[str, float]:
    """Mean recall by task and length, over all depths; lengths beyond the context as it is now are left out."""
    fitting = tuple(length for length in settings.lengths if length <= model.shape.max_context)
    if not fitting:
        return {}
    settings = settings.model_copy(update={"lengths": fitting})
    scores_of: dict[str, list[float]] = {}
    for answer in ask(model, tokenizer, settings, seed=seed):
        scores_of.setdefault(f"long_context/{answer.task}/{answer.length}", []).append(answer.score)
    return {name: fmean(scores) for name, scores in scores_of.items()}


def check_questions(tokenizer: Tokenizer, settings: LongContext, *, context: int, seed: int) -> None:
    """Raise if questions of the shortest length exceed the context, or the tokenizer cannot encode them."""
    shortest = min(settings.lengths)
    if shortest > context:
        raise ValueError(
            f"long_context.lengths {list(settings.lengths)} exceed every context of the run, the longest of "
            f"{context} tokens: nothing would be asked; set shorter ones, or a longer stage"
        )
    try:
        for _ in make_questions(
            settings.model_copy(update={"lengths": (shortest,)}), tokenizer.encode, tokenizer, seed=seed
        ):
            pass
    except ValueError as error:
        raise ValueError(f"long_context: {error}") from error


def ask(
    model: Decoder,
    tokenizer: Tokenizer,
    settings: LongContext,
    *,
    seed: int,
    chat: bool = False,
    max_new_tokens: int | None = None,
    engine: parts.Engine | None = None,
) -> list[LongAnswer]:
    """All answers, in the order of the settings' tasks, lengths and depths.

    With `chat` a prompt is a user's message under the chat template, else plain text that the model continues.
    """
    check_lengths(settings.lengths, model.shape.max_context)
    encode = choose_encode(tokenizer, chat)
    questions = list(make_questions(settings, encode, tokenizer, seed=seed, max_new_tokens=max_new_tokens))
    longest = max(settings.lengths)
    fleet = build_fleet(
        model,
        engine or choose_engine(model, longest, num_attempts=len(questions)),
        parts.Rollout(drafts="off"),
        max_length=longest,
    )
    requests = [
        Request(
            id=str(number),
            prompt=question.item.ids,
            key=noise_key(seed, 0, "long context", number),
            sampling=parts.Sampling(temperature=0.0, max_new_tokens=question.room),
            stop_ids=tokenizer.eos_ids,
        )
        for number, question in enumerate(questions)
    ]
    with fleet.at_work():  # afterwards a trainer has the cache's memory
        ended = {completion.request.id: completion.ids for completion in fleet.generate(requests)}
    return [
        mark(question, tokenizer.decode(ended[request.id], skip_special_tokens=True))
        for question, request in zip(questions, requests, strict=True)
    ]


def mark(question: LongContextQuestion, output: str) -> LongAnswer:
    item = question.item
    return LongAnswer(
        task=item.task,
        length=question.length,
        depth=item.depth,
        answers=item.answers,
        output=output,
        score=recall(output, item.answers),
    )


def make_questions(
    settings: LongContext,
    encode: Encode,
    tokenizer: Tokenizer,
    *,
    seed: int,
    max_new_tokens: int | None = None,
) -> Iterator[LongContextQuestion]:
    filler = open_filler(settings.filler)
    for task in settings.tasks:
        depths = (0.5,) if task in WITHOUT_DEPTH else spread_depths(settings.depths)
        for length in settings.lengths:
            try:
                room = max_new_tokens or answer_room(task, length, encode, tokenizer, filler)
                if room >= length:
                    raise ValueError(
                        f"an answer of {room} tokens leaves no room for a prompt of {task} at length {length}; "
                        "ask for longer contexts"
                    )
                for index in range(len(depths) * settings.per_cell):
                    item = make_item(
                        task,
                        seed=seed,
                        index=index,
                        length=length - room,
                        depth=depths[index // settings.per_cell],
                        encode=encode,
                        filler=filler,
                    )
                    yield LongContextQuestion(item=item, length=length, room=room)
            except TooShort as error:
                raise ValueError(
                    f"length {length}, with room for an answer, is too short: {error}; ask for longer contexts"
                ) from error


def answer_room(task: str, length: int, encode: Encode, tokenizer: Tokenizer, filler: Filler) -> int:
    """Tokens for an answer, from the length of some right answers."""
    probes = (
        make_item(task, seed=-1, index=index, length=length, encode=encode, filler=filler)
        for index in range(PROBES)
    )
    return round(ROOM * max(len(tokenizer.encode(probe.solution)) for probe in probes)) + MARGIN


def choose_encode(tokenizer: Tokenizer, chat: bool) -> Callable[[str], list[int]]:
    if chat:
        return lambda text: tokenizer.encode_prompt([Message(role="user", content=text)])
    return tokenizer.encode


def check_lengths(lengths: Sequence[int], context: int) -> None:
    if too_long := [length for length in lengths if length > context]:
        raise ValueError(
            f"length {max(too_long)} exceeds the model's context of {context}; ask for shorter ones, or lengthen it"
        )


def by_cell(answers: Iterable[LongAnswer]) -> dict[Cell, list[float]]:
    """Scores of each task, length and depth."""
    cells: dict[Cell, list[float]] = {}
    for answer in answers:
        cells.setdefault((answer.task, answer.length, answer.depth), []).append(answer.score)
    return cells
