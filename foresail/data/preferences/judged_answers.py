"""Single answers judged good or bad, in common file formats: a conversation with a label.

prompt + completion            TRL: texts (one user turn, one assistant turn) or lists of messages
messages, conversations        LLaMA-Factory, OpenAI's and ShareGPT's: the last message is the answer
instruction + output           Alpaca's
chosen + rejected              a pair, which is a good answer and a bad one: no label is needed

The label is a column `label` (LLaMA-Factory also has `kto_tag`): true or false, 1 or 0. A system message may stand
in a column `system`, schemas of tools in `tools`. Rows without an answer, or with an empty one, teach nothing: they
are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foresail.data.chats.conversations import FORMS, to_conversation, to_turns, with_system
from foresail.data.chats.tool_calls import read_tools
from foresail.data.files import excerpt
from foresail.data.preferences.encode import encode_answer, encode_entries
from foresail.data.preferences.loading import LoadedEntries, load_entries
from foresail.data.preferences.mixture import EncodedPreferences
from foresail.data.preferences.pairs import to_pair, why_no_answer
from foresail.data.rows import Row, name_columns
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import JudgedAnswer, Message, TrainAnswer
from foresail.tokenizer.tokenizer import Tokenizer

LABELS = ("label", "kto_tag")
PAIR = ("chosen", "rejected")
Messages = tuple[Message, ...]


def load_judged(source: str | Path, limit: int | None = None) -> LoadedEntries[JudgedAnswer]:
    """A row {"prompt": "2+2", "completion": "4", "label": true} -> a user's message and a desirable answer."""
    return load_entries(source, limit, to_judged, lambda judged: why_no_answer(judged.answer), "answer")


def encode_judged(source: HeldOutPreferences, tokenizer: Tokenizer) -> EncodedPreferences[TrainAnswer]:
    def encode(judged: JudgedAnswer, place: str) -> TrainAnswer:
        sequence = encode_answer(judged.prompt, judged.answer, tokenizer, place, tools=judged.tools)
        return TrainAnswer(name=place, answer=sequence, desirable=judged.desirable)

    return encode_entries(load_judged(source.source, source.limit), encode)


def to_judged(row: Row) -> list[JudgedAnswer]:
    """One, or both answers of a pair."""
    tools = read_tools(row.columns.get("tools"), f"{row.place}: tools")
    if all(row.columns.get(name) is not None for name in PAIR):
        pair = to_pair(row)
        return [
            JudgedAnswer(prompt=pair.prompt, answer=answer, desirable=desirable, tools=tools)
            for answer, desirable in ((pair.chosen, True), (pair.rejected, False))
        ]
    desirable = to_label(row)
    prompt, answer = split_row(row)
    if not prompt:
        raise ValueError(f"{row.place}: the answer has no prompt before it; put a user message there")
    return [JudgedAnswer(prompt=prompt, answer=answer, desirable=desirable, tools=tools)]


def to_label(row: Row) -> bool:
    """{"label": true} -> True; {"kto_tag": 0} -> False."""
    value = next((row.columns[name] for name in LABELS if row.columns.get(name) is not None), None)
    if value is None:
        known = tuple(dict.fromkeys([*(name for form in FORMS for name in form), *LABELS, *PAIR]))
        raise ValueError(
            f"{row.place}: no judged answer; needs a label (true: good, false: bad) beside prompt and completion "
            f"or messages, or a pair of chosen and rejected; {name_columns(row.columns, known)}"
        )
    if isinstance(value, str) or value not in (0, 1):
        raise ValueError(f"{row.place}: label is true or false, found {excerpt(value)}")
    return bool(value)


def split_row(row: Row) -> tuple[Messages, Messages]:
    """The prompt, and the answer: what follows it, or the conversation's last message."""
    if row.columns.get("prompt") is not None and row.columns.get("completion") is not None:
        prompt, answer = to_turns(row, "prompt", "user"), without_flags(to_answer(row))
        return without_flags(with_system(row, prompt)), answer
    conversation = without_flags(to_conversation(row))
    return conversation[:-1], conversation[-1:]


def to_answer(row: Row) -> Messages:
    """The answer, which may be empty: then it is left out and counted later."""
    value = row.columns["completion"]
    if isinstance(value, str):
        return (Message(role="assistant", content=value),)
    return to_turns(row, "completion", "assistant")


def without_flags(messages: Sequence[Message]) -> Messages:
    """Without the row's own loss flags: the answer was judged as a whole."""
    return tuple(replace(message, train=None) for message in messages)
