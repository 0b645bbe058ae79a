"""Preference pairs from files: all forms give the same pair, nothing is lost or doubled, mistakes have a place."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from chat_searches import byte_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_world import make_tokenizer, write_lines

from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.encode import encode_pair, encode_pairs
from foresail.data.preferences.mixture import mix_preferences, pair_limit
from foresail.data.preferences.pairs import load_pairs, split_texts, to_pair, why_unusable
from foresail.data.rows import Row
from foresail.recipe.tables.sources import Preferences
from foresail.records import Message, PreferencePair

SHARED = Path(__file__).parents[4] / "shared/data/preference"
TURNS = {"user": "Human", "assistant": "Assistant"}
FROM = {"user": "human", "assistant": "gpt", "system": "system", "tool": "observation"}

# Few letters, so that texts often begin alike; a marker of the hh form inside a turn could not be told from a turn.
words = st.text("abé:|<H", min_size=1, max_size=4)
contents = st.lists(words, min_size=1, max_size=4).map(" ".join)


@st.composite
def pairs(draw: st.DrawFn) -> PreferencePair:
    """A dialogue that ends with the user, and two answers that differ."""
    turns = draw(st.lists(contents, min_size=1, max_size=5).filter(lambda turns: len(turns) % 2))
    prompt = [
        Message(role="assistant" if place % 2 else "user", content=text) for place, text in enumerate(turns)
    ]
    chosen, rejected = draw(st.tuples(contents, contents).filter(lambda both: both[0] != both[1]))
    return PreferencePair(
        prompt=tuple(prompt),
        chosen=(Message(role="assistant", content=chosen),),
        rejected=(Message(role="assistant", content=rejected),),
        margin=draw(st.none() | st.floats(-5, 5)),
    )


def row(**columns: Any) -> Row:
    return Row(place="pairs.jsonl:1", columns=columns)


def as_dicts(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def as_turns(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    return [{"from": FROM[message.role], "value": message.content} for message in messages]


def as_text(messages: tuple[Message, ...]) -> str:
    return "".join(f"\n\n{TURNS[message.role]}: {message.content}" for message in messages)


@settings(max_examples=40)
@given(pairs())
def test_every_form_of_a_pair_is_read_as_that_pair(pair: PreferencePair) -> None:
    prompt, chosen, rejected = as_dicts(pair.prompt), as_dicts(pair.chosen), as_dicts(pair.rejected)
    forms: list[dict[str, Any]] = [
        {"prompt": prompt, "chosen": chosen, "rejected": rejected},
        {"prompt": prompt, "chosen": pair.chosen[0].content, "rejected": pair.rejected[0].content},
        {"prompt": prompt, "chosen": prompt + chosen, "rejected": prompt + rejected},
        {"prompt": prompt[-1]["content"], "chosen": prompt + chosen, "rejected": prompt + rejected},
        {"chosen": prompt + chosen, "rejected": prompt + rejected},
        {"chosen": as_text(pair.prompt + pair.chosen), "rejected": as_text(pair.prompt + pair.rejected)},
        {
            "prompt": as_text(pair.prompt) + "\n\nAssistant:",
            "chosen": pair.chosen[0].content,
            "rejected": pair.rejected[0].content,
        },
        {
            "conversations": as_turns(pair.prompt),
            "chosen": as_turns(pair.chosen)[0],
            "rejected": as_turns(pair.rejected)[0],
        },
    ]
    if len(pair.prompt) == 1:
        texts = {"chosen": pair.chosen[0].content, "rejected": pair.rejected[0].content}
        forms += [
            {"prompt": pair.prompt[0].content, **texts},
            {"instruction": pair.prompt[0].content, **texts},
        ]
    for form in forms:
        assert to_pair(row(margin=pair.margin, **form)) == pair


@given(*[st.text("ab é.\n\t\u2003", max_size=12)] * 3)
def test_the_split_of_two_texts_loses_and_doubles_nothing(shared: str, one: str, other: str) -> None:
    chosen, rejected = shared + one, shared + other
    user, (better,), (worse,) = split_texts(chosen, rejected)
    prompt = "".join(message.content for message in user)
    assert prompt + better.content == chosen and prompt + worse.content == rejected
    assert prompt == prompt.rstrip(), "the space goes with the word behind it"
    if prompt:
        answers = [better.content, worse.content]
        assert all(not answer or answer[0].isspace() for answer in answers), "a word was cut"
    elif len(shared.split()) > 1:
        raise AssertionError("the words that both begin with are the prompt")


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["Human", "Assistant"]), contents), min_size=1, max_size=6))
def test_turns_of_a_transcript_keep_every_word(turns: list[tuple[str, str]]) -> None:
    text = "".join(f"\n\n{speaker}: {said}" for speaker, said in [("Human", "Hi"), *turns])
    pair = to_pair(row(chosen=text + "\n\nAssistant: yes", rejected=text + "\n\nAssistant: no"))
    said = " ".join(message.content for message in (*pair.prompt, *pair.chosen))
    assert said.split() == " ".join(["Hi", *(said for _, said in turns), "yes"]).split()
    roles = [message.role for message in pair.prompt]
    assert all(one != two for one, two in pairwise(roles)) and roles[-1] == "user"


def test_words_are_not_cut_in_two() -> None:
    pair = to_pair(row(chosen="The sky is blue.", rejected="The sky is black."))
    assert [message.content for message in (*pair.prompt, *pair.chosen, *pair.rejected)] == [
        "The sky is",
        " blue.",
        " black.",
    ]


def test_scores_make_a_margin() -> None:
    columns = {"prompt": "a", "chosen": "b", "rejected": "c"}
    assert to_pair(row(**columns)).margin is None
    assert to_pair(row(**columns, score_chosen=8, score_rejected=5.5)).margin == 2.5
    assert to_pair(row(**columns, score_chosen=8, score_rejected=5.5, margin=1)).margin == 1.0


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"prompt": "a", "chosen": "b"}, "no preference pair; needs prompt and chosen and rejected"),
        ({"promt": "a", "choosen": "b", "rejected": "c"}, "did you mean"),
        ({"prompt": "a", "chosen": None, "rejected": "c"}, "found columns prompt, chosen (null), rejected"),
        ({"chosen": "one", "rejected": "two"}, "do not begin alike"),
        (
            {"input": "2+2?", "chosen": "It is 4", "rejected": "It is 5"},
            "beside a column input",
        ),
        ({"prompt": "a", "chosen": 3, "rejected": "c"}, "chosen: expected a list of messages"),
        ({"prompt": "", "chosen": "b", "rejected": "c"}, "prompt must be text"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "margin": "much"}, "margin must be a finite number"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "margin": float("nan")}, "margin must be a finite"),
        (
            {"instruction": "a", "chosen": "b", "rejected": "c", "history": ["x", "y"]},
            "history must be a list of [question, answer]",
        ),
        (
            {
                "prompt": "other",
                "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}],
                "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "c"}],
            },
            "begin with other messages than prompt",
        ),
        (
            {"prompt": [{"role": "assistant", "content": "q"}], "chosen": "b", "rejected": "c"},
            "the prompt begins with the assistant",
        ),
    ],
)
def test_a_row_that_is_no_pair_is_named_with_what_it_lacks(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=f"^pairs.jsonl:1: .*{re.escape(told)}"):
        to_pair(row(**columns))


def test_the_columns_beside_a_pair_are_not_lost() -> None:
    tool = {"type": "function", "function": {"name": "add"}}
    found = to_pair(
        row(system="Be brief.", question="2+2?", chosen="It is 4", rejected="It is 5", tools=[tool])
    )
    assert as_dicts(found.prompt) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+2?"},
    ]
    assert [found.chosen[0].content, found.rejected[0].content] == ["It is 4", "It is 5"]
    assert found.tools == (tool,)
    tokenizer = byte_tokenizer()
    encoded = encode_pair(found, tokenizer)
    assert all("TOOLS" in tokenizer.decode(answer.ids) for answer in (encoded.chosen, encoded.rejected))


def test_a_call_of_a_tool_is_no_empty_answer() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"name": "add", "arguments": {}}]}
    assert why_unusable(to_pair(row(prompt="2+2?", chosen=[call], rejected="5"))) is None


def test_transcripts_may_repeat_the_transcript_of_their_prompt() -> None:
    prompt = "\n\nHuman: 2+2?\n\nAssistant:"
    whole = to_pair(row(prompt=prompt, chosen=f"{prompt} 4", rejected=f"{prompt} 5"))
    assert whole == to_pair(row(prompt=prompt, chosen="4", rejected="5"))


def test_pairs_that_teach_nothing_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [
        {"prompt": "1", "chosen": "2", "rejected": "3"},
        {"prompt": "1", "chosen": "2", "rejected": "2"},
        {"prompt": "1", "chosen": "2", "rejected": " "},
        {"prompt": "1", "chosen": [], "rejected": "2"},
    ]
    loaded = load_pairs(write_lines(tmp_path / "pairs.jsonl", rows))
    assert len(loaded.entries) == 1 and loaded.places == [f"{tmp_path}/pairs.jsonl:1"]
    assert loaded.unusable == {
        "with equal answers": 1,
        "with an empty answer": 1,
        "without an answer of the assistant": 1,
    }
    with pytest.raises(ValueError, match="no pair to learn from: 1 with equal answers"):
        load_pairs(write_lines(tmp_path / "none.jsonl", rows[1:2]))


def test_only_the_answer_has_a_loss() -> None:
    tokenizer = make_tokenizer()
    prompt = tuple(
        Message(role=role, content=text)
        for role, text in [("user", "1 +2"), ("assistant", r"\boxed{3}"), ("user", "4 +5")]
    )
    pair = PreferencePair(
        prompt=prompt,
        chosen=(Message(role="assistant", content=r"\boxed{9}"),),
        rejected=(Message(role="assistant", content=r"\boxed{8}"),),
    )
    encoded = encode_pair(pair, tokenizer)
    before = tokenizer.encode_prompt(prompt)
    for sequence, answer in ((encoded.chosen, r"\boxed{9}"), (encoded.rejected, r"\boxed{8}")):
        assert sequence.ids[: len(before)] == before and not any(sequence.loss_mask[: len(before)])
        learned = [token for token, on in zip(sequence.ids, sequence.loss_mask, strict=True) if on]
        assert tokenizer.decode(learned[:-1]) == answer and learned[-1] in tokenizer.eos_ids


def test_pairs_that_are_too_long_are_refused_or_dropped_and_counted(tmp_path: Path) -> None:
    long = {"prompt": "1 +2", "chosen": r"\boxed{3}", "rejected": "1 +2 +3 +4 +5 +6 +7 +8"}
    rows = [{"prompt": "1 +2", "chosen": r"\boxed{3}", "rejected": r"\boxed{4}"}, long]
    path, reader = write_lines(tmp_path / "pairs.jsonl", rows), Reader(make_tokenizer())
    with pytest.raises(ValueError, match=r"1 of 2 pairs are longer than max_length 16.*pairs.jsonl:2"):
        mix_preferences([Preferences(source=str(path))], reader.pairs, pair_limit(16))
    mixed = mix_preferences([Preferences(source=str(path), too_long="drop")], reader.pairs, pair_limit(16))
    assert len(mixed.entries) == 1 and mixed.dropped == {"pairs": 1}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs shared/data/preference")
@pytest.mark.parametrize(
    ("file", "count", "unusable"),
    [
        ("hh_rlhf_harmless_base_test/test.jsonl.gz", 2308, {"with an empty answer": 4}),
        ("llamafactory_demo/dpo_en_demo.jsonl.gz", 300, {}),
        ("llamafactory_demo/dpo_zh_demo.jsonl.gz", 300, {}),
    ],
)
def test_real_files_are_read_whole(file: str, count: int, unusable: dict[str, int]) -> None:
    loaded = load_pairs(SHARED / file)
    assert len(loaded.entries) == count and loaded.unusable == unusable
    assert all(pair.prompt[-1].role == "user" and len(pair.chosen) == 1 for pair in loaded.entries)


def test_a_pair_the_template_refuses_is_named_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(
        json.dumps({"prompt": "1", "chosen": "<|end|>", "rejected": "é"}) + "\n", encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"pairs.jsonl:1: "):
        encode_pairs(Preferences(source=str(path)), make_tokenizer())
