"""Problems from files, in the formats of verl, TRL, slime and OpenRLHF, or from a generator.

All columns but the prompt go to `Problem.extra` unchanged, for reward functions that read them by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from foresail.data.chats.conversations import load_conversations
from foresail.data.chats.messages import to_messages
from foresail.data.made.generators import GENERATORS, generate, names_generator
from foresail.data.problems.difficulty import attach_levels
from foresail.data.rows import ID_KEYS, Row, name_columns, read_rows, thinking_of
from foresail.maths.extract import last_box
from foresail.recipe.tables.inputs import SUFFIXES, reach
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.reward import ANSWERLESS
from foresail.records import Message, Problem

# Tried in this order; a dot reaches into a column. verl's come first: its files also have looser names.
PROMPT_KEYS = ("prompt", "problem", "question", "input", "query", "instruction", "text")
ANSWER_KEYS = (
    "reward_model.ground_truth",
    "answer",
    "ground_truth",
    "label",
    "final_answer",
    "target",
    "solution",
    # question answering: one or several right answers
    "golden_answers",
    "answers",
    # code problems: what a program is held against is its tests
    "tests",
    "test",
    "test_list",
    "test_cases",
    "input_output",
    "plus_input",
)
ABSENT = object()


def load_problems(settings: Problems) -> list[Problem]:
    """load_problems(Problems(source="gsm8k/test.jsonl.gz", limit=1))[0].answer -> "18"."""
    if names_generator(settings.source):
        if settings.prompt_key or settings.answer_key:
            raise ValueError(
                f"{settings.source} has no columns; leave out prompt_key and answer_key, which are for files"
            )
        problems = list(generate(settings.source)[: settings.limit])
    else:
        problems = load_file(settings)
    examples = load_conversations(settings.examples) if settings.examples else []
    complete = [add_context(problem, settings.system, settings.suffix, examples) for problem in problems]
    if settings.thinking is not None:
        complete = [replace(problem, thinking=settings.thinking) for problem in complete]
    return attach_levels(complete, settings)


def load_file(settings: Problems) -> list[Problem]:
    path = Path(settings.source)
    if not path.name.endswith(SUFFIXES) and not path.exists():
        raise ValueError(
            f"unknown problem source {settings.source!r}; give a file ({', '.join(SUFFIXES)}) or one of "
            f"{', '.join(f'{name}:…' for name in GENERATORS)}"
        )
    name = settings.label
    rows = list(islice(read_rows(path), settings.limit))
    ids = find_ids(rows) or [f"{name}:{index}" for index in range(len(rows))]
    graded = settings.grader not in ANSWERLESS
    problems = [
        to_problem(row, problem_id, name, settings.prompt_key, settings.answer_key, graded=graded)
        for row, problem_id in zip(rows, ids, strict=True)
    ]
    if graded:
        check_answers(rows, problems)
    return problems


def check_answers(rows: Sequence[Row], problems: Sequence[Problem]) -> None:
    """Name all rows without an answer in one error."""
    places = [row.place for row, problem in zip(rows, problems, strict=True) if not problem.answer]
    if places:
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        raise ValueError(
            f"{len(places)} of {len(rows)} problems have no answer: {'; '.join(places[:5])}{more}; "
            "fill them in or delete these rows"
        )


def find_ids(rows: Sequence[Row]) -> list[str] | None:
    """A column that names each row differently, if there is one."""
    for key in ID_KEYS:
        ids = [str(row.columns[key]) for row in rows if row.columns.get(key) is not None]
        if len(set(ids)) == len(rows):
            return ids
    return None


def to_problem(
    row: Row,
    problem_id: str,
    name: str,
    prompt_key: str | None,
    answer_key: str | None,
    *,
    graded: bool = True,
) -> Problem:
    """The answer is optional for problems that no grader compares with it."""
    prompt_key = prompt_key or choose_key(row, PROMPT_KEYS, "prompt")
    if answer_key is None and (graded or find_key(row, ANSWER_KEYS) is not None):
        answer_key = choose_key(row, ANSWER_KEYS, "answer")
    prompt = look_up(row, prompt_key, "prompt")
    return Problem(
        id=problem_id,
        prompt=to_prompt(prompt, row.place),
        answer="" if answer_key is None else to_answer(look_up(row, answer_key, "answer")),
        source=str(row.columns.get("data_source") or name),
        thinking=thinking_of(row),
        # a prompt of messages stays there too: reward functions of TRL get it as it came
        extra={
            key: value
            for key, value in row.columns.items()
            if key != prompt_key or not isinstance(value, str)
        },
    )


def choose_key(row: Row, keys: tuple[str, ...], what: str) -> str:
    """The first of the usual names that the row has."""
    if (key := find_key(row, keys)) is not None:
        return key
    raise ValueError(
        f"{row.place}: no {what} column; {name_columns(row.columns, keys)}; "
        f"set {what}_key to the right one (tried {', '.join(keys)})"
        + (', or grader = "none" where nobody grades' if what == "answer" else "")
    )


def find_key(row: Row, keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if reach(row.columns, key, ABSENT) is not ABSENT), None)


def look_up(row: Row, key: str, what: str) -> Any:
    value = reach(row.columns, key, ABSENT)
    if value is ABSENT:
        first_part = key.partition(".")[0]
        raise ValueError(
            f"{row.place}: {what}_key {key!r} is not there; {name_columns(row.columns, (key, first_part))}"
        )
    return value


def to_prompt(value: Any, place: str) -> tuple[Message, ...]:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"{place}: the prompt is empty; fill it in or delete the row")
        return (Message(role="user", content=value),)
    messages = to_messages(value, f"{place}: prompt")
    if messages[-1].role not in ("user", "tool"):
        raise ValueError(
            f"{place}: the prompt ends with a message of the {messages[-1].role}; it must end with one of "
            "the user, where the model is to answer"
        )
    return messages


def to_answer(value: Any) -> str:
    """The answer as text, empty if there is none: 142.0 -> "142"; ["9.6"] -> "9.6"; see `final_answer`."""
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(to_answer(item) for item in value)
    if isinstance(value, dict | list | tuple):  # what a reward function of one's own may want
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else final_answer(str(value))


def final_answer(text: str) -> str:
    r"""GSM8K's "… so 1,018 eggs.\n#### 1,018" -> "1018"; r"so $x=\boxed{3}$." -> "3"; "3" -> "3"."""
    last_line = text.rstrip().rpartition("\n")[2]
    if last_line.startswith("####"):
        return re.sub(r"(?<=\d),(?=\d{3}\b)", "", last_line.removeprefix("####")).strip()
    box = last_box(text)
    return (text if box is None else box).strip()


def add_context(
    problem: Problem, system: str | None, suffix: str, examples: Sequence[tuple[Message, ...]] = ()
) -> Problem:
    """Put the recipe's system message and worked examples before the prompt, its suffix after what users ask."""
    messages = end_question(problem.prompt, suffix, problem.id) if suffix else problem.prompt
    if (system is not None or examples) and messages[0].role == "system":
        raise ValueError(
            f"problem {problem.id} brings its own system message; unset system and examples in the recipe"
        )
    opening = () if system is None else (Message(role="system", content=system),)
    shown = [end_question(example, suffix, "of data.examples") if suffix else example for example in examples]
    return replace(problem, prompt=(*opening, *chain.from_iterable(shown), *messages))


def end_question(messages: tuple[Message, ...], suffix: str, name: str) -> tuple[Message, ...]:
    """The suffix after the last user message; earlier ones are context."""
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise ValueError(f"problem {name} has no user message to put the suffix after; unset suffix")
    longer = replace(messages[last], content=messages[last].content + suffix)
    return (*messages[:last], longer, *messages[last + 1 :])
