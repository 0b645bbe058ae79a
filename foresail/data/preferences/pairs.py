"""Preference pairs: two answers to one prompt, the better one first, in common file formats.

prompt + chosen + rejected         texts (one user turn, one assistant turn each) or lists of messages; lists of
                                   answers may begin with the prompt's messages once more (UltraFeedback)
question + chosen + rejected       the same (Orca's pairs)
conversations + chosen + rejected  LLaMA-Factory: turns {"from": "human", "value": …}, an answer is one such turn
instruction + chosen + rejected    LLaMA-Factory: one user turn, with what `input` holds after it
chosen + rejected                  the prompt is what both begin with: equal messages; in texts of the form
                                   "\\n\\nHuman: …\\n\\nAssistant: …" (hh-rlhf) equal turns; in others equal words

A system message may stand in a column `system`, schemas of tools in `tools`. By how much the chosen answer is
better may stand in `margin`, or be `score_chosen` less `score_rejected`. Rows
whose answers are equal, or one of them empty, teach nothing: they are left out and counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foresail.data.chats.conversations import alpaca_prompt, to_role, to_turns, with_system
from foresail.data.chats.messages import to_messages
from foresail.data.chats.tool_calls import read_tools
from foresail.data.files import excerpt
from foresail.data.preferences.loading import LoadedEntries, load_entries
from foresail.data.rows import Row, choose_form
from foresail.records import Message, PreferencePair, Role

Messages = tuple[Message, ...]
Split = tuple[Messages, Messages, Messages]  # prompt, chosen, rejected

TURN = re.compile(r"\n\n(Human|Assistant):")
OTHER_PROMPTS = ("input", "query", "problem")  # columns that hold a prompt in many files
SPEAKERS: dict[str, Role] = {"Human": "user", "Assistant": "assistant"}


def load_pairs(source: str | Path, limit: int | None = None) -> LoadedEntries[PreferencePair]:
    """A row {"prompt": "2+2", "chosen": "4", "rejected": "5"} -> a user's message and two of the assistant."""
    return load_entries(source, limit, lambda row: [to_pair(row)], why_unusable, "pair")


def why_unusable(pair: PreferencePair) -> str | None:
    """Why a pair teaches nothing; None for a usable pair."""
    reason = why_no_answer(pair.chosen) or why_no_answer(pair.rejected)
    if reason is not None:
        return reason
    return "with equal answers" if pair.chosen == pair.rejected else None


def why_no_answer(answer: Messages) -> str | None:
    """Why it is no answer; None for a usable one."""
    if not answer or answer[-1].role != "assistant":
        return "without an answer of the assistant"
    last = answer[-1]
    return None if last.content.strip() or last.extra.get("tool_calls") else "with an empty answer"


def to_pair(row: Row) -> PreferencePair:
    prompt, chosen, rejected = FORMS[choose_form(row, FORMS, "preference pair")](row)
    if not prompt:
        raise ValueError(
            f"{row.place}: chosen and rejected do not begin alike, so there is no prompt; add a column prompt"
        )
    if prompt[0].role == "assistant":
        raise ValueError(f"{row.place}: the prompt begins with the assistant; put a user message before it")
    return PreferencePair(
        prompt=with_system(row, prompt),
        chosen=chosen,
        rejected=rejected,
        margin=to_margin(row),
        tools=read_tools(row.columns.get("tools"), f"{row.place}: tools"),
    )


def from_prompt(row: Row) -> Split:
    """A row with a column for the prompt; the answers may repeat it."""
    if is_transcript(row.columns["prompt"]):
        prompt = without_opening(parse_turns(row.columns["prompt"]))
        chosen, rejected = (transcribed_answer(row, column) for column in ("chosen", "rejected"))
    else:
        prompt = to_turns(row, "prompt", "user")
        chosen, rejected = to_answer(row, "chosen"), to_answer(row, "rejected")
    repeated = [bool(answer) and answer[0].role != "assistant" for answer in (chosen, rejected)]
    if not any(repeated):
        return prompt, chosen, rejected
    both, *answers = split_messages(chosen, rejected)
    is_last_turn = isinstance(row.columns["prompt"], str) and both[-len(prompt) :] == prompt
    if is_last_turn:  # of a longer dialogue, or behind a system message
        return both, answers[0], answers[1]
    if chosen[: len(prompt)] == prompt == rejected[: len(prompt)]:
        return prompt, chosen[len(prompt) :], rejected[len(prompt) :]
    raise ValueError(
        f"{row.place}: chosen and rejected begin with other messages than prompt, or with other ones each; let "
        "them hold the answers only, or drop the column prompt"
    )


def from_question(row: Row) -> Split:
    return from_prompt(replace(row, columns={**row.columns, "prompt": row.columns["question"]}))


def from_conversations(row: Row) -> Split:
    """LLaMA-Factory's."""
    value, place = row.columns["conversations"], f"{row.place}: conversations"
    turns = [to_role(entry, place) for entry in value] if isinstance(value, list) else value
    return to_messages(turns, place), to_answer(row, "chosen"), to_answer(row, "rejected")


def from_instruction(row: Row) -> Split:
    """LLaMA-Factory's, as Alpaca has it."""
    return alpaca_prompt(row), to_answer(row, "chosen"), to_answer(row, "rejected")


def from_answers(row: Row) -> Split:
    """The prompt is the common beginning of both answers."""
    texts = [row.columns["chosen"], row.columns["rejected"]]
    if not all(isinstance(text, str) for text in texts):
        return split_messages(to_answer(row, "chosen"), to_answer(row, "rejected"))
    if all(is_transcript(text) for text in texts):
        return split_messages(*map(parse_turns, texts))
    if prompt_columns := [name for name in OTHER_PROMPTS if row.columns.get(name)]:
        raise ValueError(
            f"{row.place}: chosen and rejected without a prompt, beside a column {prompt_columns[0]}; if that is "
            "the prompt, call it prompt, else remove it: the prompt is then what both answers begin with"
        )
    return split_texts(*texts)


def split_messages(chosen: Messages, rejected: Messages) -> Split:
    """([u1, a1, u2, good], [u1, a1, u2, bad]) -> ([u1, a1, u2], [good], [bad]).

    The prompt ends before the assistant's turn, also where that is equal in both.
    """
    shared = count_equal(chosen, rejected)
    while shared and chosen[shared - 1].role == "assistant":
        shared -= 1
    return chosen[:shared], chosen[shared:], rejected[shared:]


def split_texts(chosen: str, rejected: str) -> Split:
    """("The sky is blue.", "The sky is black.") -> "The sky is", " blue." and " black.": between words."""
    shared = chosen[: count_equal(chosen, rejected)]
    if not (is_between_words(chosen, len(shared)) and is_between_words(rejected, len(shared))):
        shared = shared[: len(shared) - len(shared.split()[-1])] if shared.split() else ""
    prompt = shared.rstrip()
    user = (Message(role="user", content=prompt),) if prompt else ()
    answers = [(Message(role="assistant", content=text[len(prompt) :]),) for text in (chosen, rejected)]
    return user, answers[0], answers[1]


def count_equal(left: Sequence[object], right: Sequence[object]) -> int:
    """The length of the common beginning: count_equal("blue", "black") -> 2."""
    shorter = min(len(left), len(right))
    return next((place for place in range(shorter) if left[place] != right[place]), shorter)


def is_between_words(text: str, place: int) -> bool:
    return place == 0 or place == len(text) or text[place - 1].isspace() or text[place].isspace()


def is_transcript(value: Any) -> bool:
    return isinstance(value, str) and TURN.match(value) is not None


def parse_turns(text: str) -> Messages:
    """ "\\n\\nHuman: Hi\\n\\nAssistant: Hello" -> user "Hi", assistant "Hello". Turns of one speaker become one."""
    _, *parts = TURN.split(text)
    turns: list[Message] = []
    for speaker, body in zip(parts[::2], parts[1::2], strict=True):
        role, content = SPEAKERS[speaker], body.strip()
        if turns and turns[-1].role == role:
            content = f"{turns.pop().content}\n\n{content}".strip()
        turns.append(Message(role=role, content=content))
    return tuple(turns)


def without_opening(turns: Messages) -> Messages:
    """Without the empty turn at the end of "…\\n\\nAssistant:", which the answer continues."""
    return turns[:-1] if turns[-1].role == "assistant" and not turns[-1].content else turns


def transcribed_answer(row: Row, column: str) -> Messages:
    """The answer in a column that may repeat the whole dialogue."""
    value = row.columns[column]
    return parse_turns(value) if is_transcript(value) else to_answer(row, column)


def to_answer(row: Row, column: str) -> Messages:
    """A text, one message, or several, with LLaMA-Factory's names or ours."""
    value, place = row.columns[column], f"{row.place}: {column}"
    if isinstance(value, str):
        return (Message(role="assistant", content=value),)
    if isinstance(value, dict):
        value = [value]
    if value == []:
        return ()
    return to_messages(
        [to_role(entry, place) for entry in value] if isinstance(value, list) else value, place
    )


def to_margin(row: Row) -> float | None:
    """{"score_chosen": 8, "score_rejected": 5} -> 3.0."""
    if row.columns.get("margin") is not None:
        return to_number(row, "margin")
    scores = ("score_chosen", "score_rejected")
    if any(row.columns.get(name) is None for name in scores):
        return None
    return to_number(row, "score_chosen") - to_number(row, "score_rejected")


def to_number(row: Row, column: str) -> float:
    value: Any = row.columns[column]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{row.place}: {column} must be a finite number, found {excerpt(value)}")
    return float(value)


# By the columns a row must have, in the order in which they are looked for.
FORMS: dict[tuple[str, ...], Callable[[Row], Split]] = {
    ("prompt", "chosen", "rejected"): from_prompt,
    ("question", "chosen", "rejected"): from_question,
    ("conversations", "chosen", "rejected"): from_conversations,
    ("instruction", "chosen", "rejected"): from_instruction,
    ("chosen", "rejected"): from_answers,
}
