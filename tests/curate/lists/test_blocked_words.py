"""The step `blocked_words`."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest
from deduplicate.strange_texts import hostile_texts

from foresail.curate.document import Document, Drop
from foresail.curate.lists.phrases import Phrases
from foresail.curate.lists.words import BlockedWords


def test_whole_words_against_a_regular_expression() -> None:
    dice = random.Random(1)
    parts = ["bad", "luck", "Worse", "ill", "will", " ", " ", ", ", "-", "s"]
    words = ["bad", "worse", "bad luck", "ill", "will"]
    for _ in range(1000):
        text = "".join(dice.choice(parts) for _ in range(12))
        entries = dice.sample(words, 3)
        gap = r"[\W_]+"
        patterns = {entry: re.compile(rf"(?<!\w){entry.replace(' ', gap)}(?!\w)") for entry in entries}
        expected = {entry for entry, pattern in patterns.items() if pattern.search(text.lower())}
        assert {*Phrases.of(entries).count(text).different} == expected, (entries, text)


def test_scripts_without_spaces_by_substring() -> None:
    found = Phrases.of(["坏话", "คำหยาบ"]).count("这是坏话。และคำหยาบอยู่")
    assert {*found.different} == {"坏话", "คำหยาบ"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lists = tmp_path / "blocked"
    lists.mkdir()
    (lists / "en").write_text("darn\nheck\nbloody fool\n", encoding="utf-8")
    (lists / "id.txt").write_text("sialan\nbrengsek\n", encoding="utf-8")
    with gzip.open(lists / "th.txt.gz", "wt", encoding="utf-8") as file:
        file.write("คำหยาบ\n")
    (lists / "README.md").write_text("lists")
    return lists


def outcome(step: BlockedWords, text: str, **metadata: str) -> Document | Drop:
    verdict = step.open()(Document(id="a", text=text, metadata=metadata))
    assert isinstance(verdict, Document | Drop)
    return verdict


def test_a_language_has_its_own_list(folder: Path) -> None:
    step = BlockedWords(lists=(str(folder),), least=2)
    text = "Darn, what the heck."
    drop = outcome(step, text, language="en")
    assert isinstance(drop, Drop) and drop.reason == "blocked_words" and "darn, heck" in drop.detail
    assert isinstance(outcome(step, text, language="id"), Document)
    assert isinstance(outcome(step, text), Document)
    assert isinstance(outcome(step, text, language="en-GB"), Drop)
    by_default = BlockedWords(lists=(str(folder),), least=2, default="en")
    assert isinstance(outcome(by_default, text), Drop)


def test_a_file_named_itself_is_for_all(folder: Path) -> None:
    step = BlockedWords(lists=(str(folder), str(folder / "en")), least=1)
    assert isinstance(outcome(step, "heck", language="id"), Drop)
    assert isinstance(outcome(step, "heck", language="xx"), Drop)


def test_a_share_drops_short_texts_with_one_word(folder: Path) -> None:
    step = BlockedWords(lists=(str(folder),), share=0.1)
    assert isinstance(outcome(step, "heck, no", language="en"), Drop)
    assert isinstance(outcome(step, "heck, no" + " but words" * 20, language="en"), Document)


def test_any_text_passes_without_an_error(folder: Path) -> None:
    step = BlockedWords(lists=(str(folder),), default="th").open()
    for text in hostile_texts(3, 300):
        step(Document(id="a", text=text))


def test_mistakes_say_what_to_do(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no file"):
        BlockedWords(lists=(str(tmp_path / "missing"),))
    with pytest.raises(ValueError, match="lists are for en, id, th"):
        BlockedWords(lists=(str(folder),), default="xx")
    (folder / "slurs.txt").write_text("x\n")
    with pytest.raises(ValueError, match="not named by a language"):
        BlockedWords(lists=(str(folder),))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no files"):
        BlockedWords(lists=(str(tmp_path / "empty"),))
