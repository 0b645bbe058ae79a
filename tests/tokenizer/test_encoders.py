"""gigatoken gives the ids of `tokenizers`, or it is not used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as some

from foresail.data.corpus import tokenize as corpus_tokenize
from foresail.tokenizer import documents
from foresail.tokenizer.choose_encoder import choose_encoder
from foresail.tokenizer.documents import DocumentEncoder
from foresail.tokenizer.gigatoken_core import GigatokenCore
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

TEXTS = ["the cat sat on the mat", "def f(x):\n\treturn x", "ที่นี่ดีมาก", "it's 12 o'clock", "ééé"] * 3
# Qwen 3.5's, which keeps marks with their letters: gigatoken knows it.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def known_tokenizer() -> Tokenizer:
    """A BPE of our own whose pattern gigatoken knows."""
    trained = train_bpe(TEXTS, vocab_size=330, whole_tokens=("<think>",))
    cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), behavior="isolated")
    symbols = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    definition = json.loads(trained.files.definition)
    core = tokenizers.Tokenizer.from_str(trained.files.definition)
    core.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([cut, symbols])
    definition["pre_tokenizer"] = json.loads(core.to_str())["pre_tokenizer"]
    return Tokenizer(replace(trained.files, definition=json.dumps(definition)))


@pytest.fixture(scope="module")
def pair() -> tuple[DocumentEncoder, DocumentEncoder]:
    pytest.importorskip("gigatoken", reason="needs the extra fast-tokenize")
    tokenizer = known_tokenizer()
    return DocumentEncoder(tokenizer), DocumentEncoder(tokenizer, encoder="gigatoken")


CHARACTERS = some.text(some.characters(exclude_categories=["Cs"]), max_size=60)
PIECES = some.sampled_from(
    ["<|end|>", "<|user|>", "<think>", " ", "\n", "\x00", "the cat", "ที่", "'LL", "e\u0301", "12"]
)


@settings(max_examples=150, deadline=None)
@given(texts=some.lists(CHARACTERS | some.lists(PIECES, max_size=9).map("".join), min_size=1, max_size=5))
def test_ids_are_equal_on_any_text(pair: tuple[DocumentEncoder, DocumentEncoder], texts: list[str]) -> None:
    usual, fast = pair
    assert fast.encode(texts) == usual.encode(texts)


def test_a_corpus_is_the_same_by_either_encoder(tmp_path: Path) -> None:
    pytest.importorskip("gigatoken", reason="needs the extra fast-tokenize")
    known_tokenizer().save(tmp_path / "tokenizer")
    rows = [*TEXTS, "\x00 and NUL", "\ud800 half", "x" * 300_000, "<|end|> by name"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    for encoder in ("tokenizers", "gigatoken", "auto"):
        corpus_tokenize.tokenize(
            [str(tmp_path / "a.jsonl")],
            tokenizer=str(tmp_path / "tokenizer"),
            out=tmp_path / encoder,
            workers=1,
            encoder=encoder,
        )
    for name in sorted(path.name for path in (tmp_path / "tokenizers").iterdir()):
        contents = {
            (tmp_path / encoder / name).read_bytes() for encoder in ("tokenizers", "gigatoken", "auto")
        }
        assert len(contents) == 1, name


class Wrong:
    """An encoder that knows no Thai."""

    def __init__(self, definition: str, *, special_tokens: bool) -> None:
        self.core = tokenizers.Tokenizer.from_str(definition)
        self.core.encode_special_tokens = not special_tokens

    def encode(self, texts: list[str]) -> list[list[int]]:
        plain = [text.replace("\N{THAI CHARACTER MAI EK}", "") for text in texts]
        return [part.ids for part in self.core.encode_batch_fast(plain, add_special_tokens=False)]


def test_other_ids_are_noticed_before_the_run_and_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "GigatokenCore", Wrong)
    tokenizer = known_tokenizer()
    chosen, reason = choose_encoder("auto", tokenizer, ["plain"])
    assert chosen == "tokenizers" and reason is not None and "other ids than tokenizers" in reason
    with pytest.raises(ValueError, match=r"other ids than tokenizers for .*; use --encoder tokenizers"):
        choose_encoder("gigatoken", tokenizer, ["plain"])
    encoder = DocumentEncoder(tokenizer, encoder="gigatoken")
    for _ in range(documents.CALLS_PER_CHECK):
        encoder.encode(["plain"])
    with pytest.raises(ValueError, match="other ids than tokenizers for 'ที่'"):
        encoder.encode(["ที่"])


def test_what_gigatoken_does_not_know_is_said_and_auto_goes_on_without(tmp_path: Path) -> None:
    trained = train_bpe(TEXTS, vocab_size=320)  # cuts digits by a step of its own
    trained.save(tmp_path / "tokenizer")
    (tmp_path / "a.jsonl").write_text('{"text": "the cat"}\n')
    options = {"tokenizer": str(tmp_path / "tokenizer"), "out": tmp_path / "out", "workers": 1}
    messages: list[str] = []
    made = corpus_tokenize.tokenize(
        [str(tmp_path / "a.jsonl")], **options, encoder="auto", say=messages.append
    )
    assert made.documents == 1 and "use --encoder tokenizers" in messages[0]
    with pytest.raises((ValueError, ImportError), match=r"(does not know this tokenizer|fast-tokenize)"):
        GigatokenCore(trained.files.definition, special_tokens=False)
