"""Reports on tokenizers: any form of file, figures by language, table, JSON and picture."""

from __future__ import annotations

import base64
import gzip
import json
import lzma
from pathlib import Path
from random import Random

import pytest

from foresail.tokenizer.report.fertility import measure, measure_all, relative_to
from foresail.tokenizer.report.plot import draw
from foresail.tokenizer.report.ranks import open_ranks
from foresail.tokenizer.report.rival import open_rival
from foresail.tokenizer.report.tables import as_json, describe
from foresail.tokenizer.train import train_bpe
from foresail.tokenizer.training.merges import encode_slowly, every_split, merge_ranks

TEXTS = {"en": ["the sea is tall"], "th": ["ทะเลใหญ่", "เรือ"]}
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    train_bpe(["the sea is tall"] * 9, vocab_size=275).save(tmp_path / "small")
    return tmp_path / "small"


def test_figures_count_tokens_characters_and_bytes(saved: Path) -> None:
    figures = measure(open_rival(saved), TEXTS["th"])
    # no Thai was trained: every byte is a token, and none is a character
    assert figures.tokens == figures.bytes == figures.partial == 36 and figures.characters == 12
    assert figures.per_character == 3 and figures.bytes_per_token == 1 and figures.exact_share == 1


def test_all_forms_of_a_file_give_the_same_figures(saved: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed" / "tokenizer.json.xz"
    packed.parent.mkdir()
    packed.write_bytes(lzma.compress((saved / "tokenizer.json").read_bytes()))
    zipped = tmp_path / "other.json.gz"
    zipped.write_bytes(gzip.compress((saved / "tokenizer.json").read_bytes()))
    rivals = [open_rival(path) for path in (saved, packed, packed.parent, zipped)]
    assert [rival.name for rival in rivals] == ["small", "packed", "packed", "other"]
    results = [measure(rival, TEXTS["en"]) for rival in rivals]
    assert results == [results[0]] * 4


def test_english_is_the_base(saved: Path) -> None:
    by_language = measure_all([open_rival(saved)], TEXTS)["small"]
    assert relative_to(by_language) == {"en": 1, "th": 36 / by_language["en"].tokens}
    assert relative_to(by_language, "fr") == {}


def test_tables_json_and_picture(saved: Path, tmp_path: Path) -> None:
    rival = open_rival(saved)
    results = measure_all([rival], TEXTS)
    lines = [line.split() for line in describe(results, {"small": rival.size})]
    english = f"{results['small']['en'].per_character:.3f}*"
    assert lines[1:3] == [["size", "en", "th"], ["small", f"{rival.size}", english, "3.000*"]]
    figures = as_json(results, {"small": rival.size})
    assert figures["small"]["languages"]["th"]["tokens_per_character"] == 3
    assert json.loads(json.dumps(figures)) == figures
    draw(results, tmp_path / "new" / "fertility.png")
    assert (tmp_path / "new" / "fertility.png").read_bytes().startswith(b"\x89PNG")


def test_ranks_encode_by_tiktokens_rule() -> None:
    random = Random(0)
    tokens = [bytes([value]) for value in range(256)]
    while len(tokens) < 330:
        token = random.choice(tokens) + random.choice(tokens[97:110])
        if token not in tokens:
            tokens.append(token)
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    core = open_ranks([*lines, ""], "cl100k_base")
    ranks = merge_ranks(every_split(tokens))
    for _ in range(100):
        word = "".join(random.choices("abcdefghijklm", k=random.randrange(1, 12)))
        expected = [word.encode()] if word.encode() in tokens else encode_slowly(word.encode(), ranks)
        assert [tokens[number] for number in core.encode(word).ids] == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("o200k_base.tiktoken", b"IQ== 0\n", "the ranks are not 0, 1, 2"),
        ("o200k_base.tiktoken", b"IQ= x\n", "o200k_base.tiktoken:1: no token in base 64"),
        ("mine.tiktoken", b"IQ== 0\n", "the pattern of these ranks is not known"),
        ("tokenizer.json", b"{}", "is not a tokenizer definition"),
        ("tokenizer.json.xz", b"no xz", "is damaged"),
        ("tokenizer.json.gz", b"no gz", "is damaged"),
        ("tokenizer.json", b"\xff\xfe", "is damaged or no text"),
    ],
)
def test_bad_files_say_what_to_do(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_rival(tmp_path / name)


def test_missing_things_say_so(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_rival(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no tokenizer\.json"):
        open_rival(tmp_path / "empty")
    with pytest.raises(ValueError, match="th has no text"):
        measure_all([open_rival(saved)], {"th": [""]})
    with pytest.raises(ValueError, match="two tokenizers are called small"):
        measure_all([open_rival(saved), open_rival(saved)], TEXTS)


def test_rivals_open() -> None:
    file = SHARED / "tokenizers" / "qwen2_5"
    if not file.exists():
        pytest.skip("needs ../shared/data/tokenizers")
    rival = open_rival(file)
    assert rival.name == "qwen2_5" and rival.size == 151_665
    # "Hello world" is two tokens of Qwen 2.5
    assert measure(rival, ["Hello world"]).tokens == 2
