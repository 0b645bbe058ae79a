"""Texts become token shards: every document is there, in order, whoever makes them and whatever is killed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import shutil
import signal
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from foresail.data.corpus import documents, shard_writer, tokenize
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.documents import TextForm
from foresail.recipe.tables.corpus import CorpusError
from foresail.runlog import atomic
from foresail.tokenizer import parts as tokenizer_parts
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

TEXT = some.one_of(
    some.text(max_size=40),
    some.sampled_from(["", " ", "\n", "word " * 300, "x" * 900, "\u2028 \x00 \x1f", "😀" * 50]),
)
DOCUMENTS = some.lists(TEXT, min_size=1, max_size=30).filter(any)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_bpe(["one two three word word"], vocab_size=280, alphabet="bytes").save(folder)
    return folder


def write_jsonl(path: Path, texts: list[str]) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def read_all(corpus: Corpus) -> list[list[int]]:
    lengths = corpus.lengths(np.arange(corpus.num_documents)).tolist()
    return [corpus.read(number, 0, length).tolist() for number, length in enumerate(lengths)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@settings(max_examples=25)
@given(texts=DOCUMENTS, piece_bytes=some.integers(20, 3000), part=some.integers(5, 200))
def test_every_document_comes_out_as_it_went_in(
    tokenizer: Path, tmp_path_factory: pytest.TempPathFactory, texts: list[str], piece_bytes: int, part: int
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    source = write_jsonl(folder / "a.jsonl", texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # nothing is killed here, and a disk takes its time
        for module in (documents, tokenizer_parts):
            patch.setattr(module, "LONGEST_PART", part)
        made = tokenize.tokenize(
            [source], tokenizer=str(tokenizer), out=folder / "out", workers=1, piece_bytes=piece_bytes
        )
    corpus, opened = Corpus(folder / "out"), Tokenizer.load(tokenizer)
    kept = [text for text in texts if text]
    found = read_all(corpus)
    assert [opened.decode(ids[:-1]) for ids in found] == kept
    assert {ids[-1] for ids in found} == {opened.eos_ids[0]}
    assert (made.documents, made.empty) == (len(kept), len(texts) - len(kept))
    assert made.tokens == sum(map(len, found)) and made.longest == max(map(len, found))
    assert [*corpus.verify()] == []


class Countdown:
    """Kills its process at the n-th of the calls that write, sync or rename something."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return counted


def killed_at(calls: int, work: Callable[[], object]) -> bool:
    """In a process of its own; whether it was killed rather than done."""
    child = os.fork()
    if child == 0:
        countdown = Countdown(calls)
        for owner, name in ((os, "replace"), (os, "fsync"), (shard_writer.CheckedFile, "write")):
            setattr(owner, name, countdown.before(getattr(owner, name)))
        for owner, name in ((Path, "write_text"), (Path, "unlink"), (atomic, "sync")):
            setattr(owner, name, countdown.before(getattr(owner, name)))
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_kills_at_any_moment_change_no_byte(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    source = write_jsonl(tmp_path / "a.jsonl", [f"text {n} " * (n % 7) for n in range(30)])

    def make(out: str) -> None:
        tokenize.tokenize([source], tokenizer=str(tokenizer), out=tmp_path / out, workers=1, piece_bytes=400)

    make("calm")
    numbers, kills = random.Random(0), 0
    for attempt in range(12):
        out = f"disturbed-{attempt}"
        while killed_at(numbers.randint(1, 60), lambda out=out: make(out)):  # type: ignore[misc]
            kills += 1
        assert contents(tmp_path / out) == contents(tmp_path / "calm")
    assert kills > 12


def test_the_number_of_processes_changes_no_byte(tokenizer: Path, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [f"text {n}" for n in range(40)])
    for workers in (1, 2):
        tokenize.tokenize(
            [source], tokenizer=str(tokenizer), out=tmp_path / str(workers), workers=workers, piece_bytes=200
        )
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_bad_line_is_named_by_whatever_process_finds_it(tokenizer: Path, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", ["good"] * 20)
    with Path(source).open("a") as file:
        file.write('{"text": 7}\n')
    for workers in (1, 2):
        with pytest.raises(ValueError, match=r"a.jsonl, byte 340: text must be text, found 7"):
            tokenize.tokenize(
                [source],
                tokenizer=str(tokenizer),
                out=tmp_path / str(workers),
                workers=workers,
                piece_bytes=99,
            )


def test_all_forms_of_files_give_the_same_documents(tokenizer: Path, tmp_path: Path) -> None:
    texts = ["one", "two\nlines", "three"]
    lines = "".join(json.dumps({"content": text}) + "\n" for text in texts)
    (tmp_path / "plain.jsonl").write_text("\ufeff" + lines + "\n")
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "packed.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    (tmp_path / "books").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "books" / f"{number}.txt").write_text(text)
    (tmp_path / "separated.txt").write_text("one\n<end>\ntwo\nlines\n<end>\nthree")
    sources = ["plain.jsonl", "packed.jsonl.gz", "packed.jsonl.xz", "books", "separated.txt"]
    parquet = pytest.importorskip("pyarrow.parquet", reason="parquet needs pyarrow")
    table = pytest.importorskip("pyarrow").table({"text": texts})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    opened, found = Tokenizer.load(tokenizer), {}
    for source in [*sources, "a.parquet"]:
        out = tmp_path / f"of-{source}"
        form = TextForm(separator="<end>")
        tokenize.tokenize(
            [str(tmp_path / source)], tokenizer=str(tokenizer), out=out, form=form, workers=1, piece_bytes=30
        )
        found[source] = [opened.decode(ids[:-1]).removesuffix("\n") for ids in read_all(Corpus(out))]
    assert found == dict.fromkeys(found, texts)


def test_names_of_special_tokens_are_text_unless_asked_for(tokenizer: Path, tmp_path: Path) -> None:
    opened = Tokenizer.load(tokenizer)
    name = opened.decode([opened.eos_ids[0]])
    source = write_jsonl(tmp_path / "a.jsonl", [f"a{name}b"])
    ids = {}
    for special in (False, True):
        out = tmp_path / str(special)
        tokenize.tokenize([source], tokenizer=str(tokenizer), out=out, special_tokens=special, workers=1)
        [ids[special]] = read_all(Corpus(out))
    assert ids[False].count(opened.eos_ids[0]) == 1 and opened.decode(ids[False][:-1]) == f"a{name}b"
    assert ids[True].count(opened.eos_ids[0]) == 2


@pytest.fixture(scope="module")
def corpus(tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    source = write_jsonl(folder / "a.jsonl", [f"text {n}" for n in range(20)])
    tokenize.tokenize([source], tokenizer=str(tokenizer), out=folder / "out", workers=1, piece_bytes=150)
    return folder / "out"


def test_any_change_of_any_file_is_found(corpus: Path, tmp_path: Path) -> None:
    """Of the size when it is opened, of the content by reading all of it."""
    numbers = random.Random(0)
    files = [path.name for path in corpus.iterdir() if path.suffix in (".tokens", ".ends")]
    for attempt in range(30):
        damaged = shutil.copytree(corpus, tmp_path / str(attempt))
        file = damaged / numbers.choice(files)
        content = bytearray(file.read_bytes())
        match numbers.choice(["flip", "cut", "lengthen", "remove"]):
            case "flip":
                content[numbers.randrange(len(content))] ^= 1 << numbers.randrange(8)
                file.write_bytes(content)
                try:
                    found = [*Corpus(damaged).verify()]
                except CorpusError as error:
                    found = [str(error)]
                assert len(found) == 1 and file.name in found[0] and "not what was written" in found[0]
                continue
            case "cut":
                file.write_bytes(content[: numbers.randrange(len(content))])
            case "lengthen":
                file.write_bytes(content + b"x")
            case _:
                file.unlink()
        with pytest.raises(CorpusError, match=rf"{file.name} (has .* bytes|is missing)"):
            Corpus(damaged)


def test_a_damaged_manifest_is_told(corpus: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(corpus, tmp_path / "damaged")
    manifest = json.loads((damaged / "manifest.json").read_text())
    for change in ({"tokens": 5}, {"documents": "9"}, {"format": 2}, {"more": 1}):
        (damaged / "manifest.json").write_text(json.dumps(manifest | change))
        with pytest.raises(CorpusError, match=r"manifest.json is damaged"):
            Corpus(damaged)
    (damaged / "manifest.json").unlink()
    with pytest.raises(CorpusError, match="an unfinished one"):
        Corpus(damaged)
    with pytest.raises(CorpusError, match="foresail data tokenize SOURCE"):
        Corpus(tmp_path / "nowhere")


def test_another_tokenizer_is_refused(corpus: Path) -> None:
    with pytest.raises(CorpusError, match="another tokenizer"):
        Corpus(corpus, tokenizer="0" * 64)


def test_a_folder_goes_on_only_with_what_it_began_with(tokenizer: Path, tmp_path: Path) -> None:
    source, other = (write_jsonl(tmp_path / name, ["a text"]) for name in ("a.jsonl", "b.jsonl"))
    out = tmp_path / "out"
    made = tokenize.tokenize([source], tokenizer=str(tokenizer), out=out, workers=1)
    assert tokenize.tokenize([source], tokenizer=str(tokenizer), out=out, workers=1) == made
    with pytest.raises(FileExistsError, match="a corpus already, of other sources"):
        tokenize.tokenize([other], tokenizer=str(tokenizer), out=out, workers=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(FileExistsError, match=r"holds thesis.txt and is no corpus"):
        tokenize.tokenize([source], tokenizer=str(tokenizer), out=tmp_path / "mine", workers=1)
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "plan.json").write_text(json.dumps({"sources": [{"path": source}], "end": 0}))
    with pytest.raises(ValueError, match=r"was begun with .*; give the same sources"):
        tokenize.tokenize([source], tokenizer=str(tokenizer), out=begun, workers=1)


def test_a_mended_source_is_read_anew_and_what_was_done_before_it_is_kept(
    tokenizer: Path, tmp_path: Path
) -> None:
    texts = {name: [f"{name} {number}" for number in range(20)] for name in ("one", "two", "three")}
    sources = [write_jsonl(tmp_path / f"{name}.jsonl", lines) for name, lines in texts.items()]
    whole = Path(sources[1]).read_text()
    Path(sources[1]).write_text(whole * 3 + '{"text": 5}\n')
    out = tmp_path / "corpus"
    options = {"tokenizer": str(tokenizer), "workers": 1, "piece_bytes": 100}
    with pytest.raises(ValueError, match=r"two\.jsonl"):
        tokenize.tokenize(sources, out=out, **options)
    begun = {file.name: file.stat().st_mtime_ns for file in out.glob("shard-*")}
    Path(sources[1]).write_text(whole)
    tokenize.tokenize(sources, out=out, **options)
    tokenize.tokenize(sources, out=tmp_path / "fresh", **options)
    assert contents(out) == contents(tmp_path / "fresh")
    now = {file.name: file.stat().st_mtime_ns for file in out.glob("shard-*")}
    kept = [name for name in now if now[name] == begun.get(name)]
    assert kept and all(name < "shard-00010" for name in kept)


def test_sources_without_any_text_are_an_error(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    empty = write_jsonl(tmp_path / "empty.jsonl", [])
    blank = write_jsonl(tmp_path / "blank.jsonl", ["", ""])
    for source, told in (
        (empty, r"hold no text \(0 empty"),
        (blank, r"hold no text \(2 empty"),
        (str(tmp_path / "folder"), "holds no file of texts"),
        (str(tmp_path / "nothing.jsonl"), "does not exist"),
        (str(tokenizer / "tokenizer.json"), "byte 0: "),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=told):
            tokenize.tokenize(
                [source], tokenizer=str(tokenizer), out=tmp_path / "out" / Path(source).stem, workers=1
            )


def test_all_frames_of_a_zst_file_are_read_and_one_that_is_cut_short_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """zlib's objects stand for those of `zstandard`, which are used in the same way."""
    frames = SimpleNamespace(
        ZstdDecompressor=lambda max_window_size: zlib, ZstdError=zlib.error
    )  # zlib.decompressobj()
    monkeypatch.setitem(sys.modules, "zstandard", frames)
    lines = [json.dumps({"text": str(number)}) + "\n" for number in range(20_000)]
    packed = b"".join(zlib.compress("".join(lines[start::2]).encode()) for start in (0, 1))
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(packed)
    found = [part.text for part in documents.read_piece(documents.Piece(file=str(file)), TextForm())]
    assert found == [str(n) for n in [*range(0, 20_000, 2), *range(1, 20_000, 2)]]
    for broken in (packed[:-3], b"junk", packed + b"junk"):
        file.write_bytes(broken)
        with pytest.raises(ValueError, match=r"a.jsonl.zst is damaged or cut short"):
            _ = [*documents.read_piece(documents.Piece(file=str(file)), TextForm())]


def test_a_file_that_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    whole = bz2.compress(b'{"text": "a"}\n' * 99)
    for name, content in (
        ("a.jsonl.bz2", b"junk"),
        ("b.jsonl.bz2", whole[:-9]),
        ("c.jsonl.gz", b"junk"),
        ("d.jsonl.xz", b"junk"),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} is damaged or cut short"):
            _ = [*documents.read_piece(documents.Piece(file=str(file)), TextForm())]


def test_what_a_folder_holds_besides_texts_is_told(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.csv", "c.JSONL", ".hidden"):
        (tmp_path / name).write_text("x")
    assert [path.name for path in documents.find_files([str(tmp_path)])] == ["a.jsonl"]
    assert [path.name for path in documents.passed_over([str(tmp_path)])] == ["b.csv", "c.JSONL"]


def test_ids_and_lengths_that_cannot_be_are_told_as_they_are_read(corpus: Path, tmp_path: Path) -> None:
    ids, ends = (shutil.copytree(corpus, tmp_path / name) for name in ("ids", "ends"))
    changed = np.memmap(ids / "shard-00000.tokens", "<u2", mode="r+")
    changed[2] = 60_000
    changed.flush()
    with pytest.raises(CorpusError, match=r"shard-00000.tokens is not what was written"):
        Corpus(ids).read(0, 0, 3)
    changed = np.memmap(ends / "shard-00000.ends", "<i8", mode="r+")
    changed[0] = 10**6
    changed.flush()
    with pytest.raises(CorpusError, match=r"shard-00000.ends is not what was written"):
        Corpus(ends).lengths(np.arange(3))


def test_a_corpus_that_lost_a_shard_is_not_called_made(tokenizer: Path, tmp_path: Path) -> None:
    source, out = write_jsonl(tmp_path / "a.jsonl", ["a text"]), tmp_path / "out"
    tokenize.tokenize([source], tokenizer=str(tokenizer), out=out, workers=1)
    (out / "shard-00000.tokens").unlink()
    with pytest.raises(CorpusError, match=r"is missing; restore it, or remove the folder and make"):
        tokenize.tokenize([source], tokenizer=str(tokenizer), out=out, workers=1)


@pytest.mark.parametrize("prefix", ["Prepend", "Metaspace", "ByteLevel"])
def test_a_blank_before_a_text_is_put_before_whole_documents_only(
    prefix: str, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = json.loads((tokenizer / "tokenizer.json").read_text())
    byte_level = {"type": "ByteLevel", "add_prefix_space": prefix == "ByteLevel", "trim_offsets": True}
    steps = {
        "Prepend": [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}],
        "Metaspace": [
            {"type": "Metaspace", "replacement": " ", "prepend_scheme": "first", "split": False},
            {**byte_level, "add_prefix_space": False},
        ],
        "ByteLevel": [byte_level],
    }
    definition["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps[prefix]}
    definition["normalizer"] = {"type": "Prepend", "prepend": " "} if prefix == "Prepend" else None
    shutil.copytree(tokenizer, tmp_path / "tokenizer")
    (tmp_path / "tokenizer" / "tokenizer.json").write_text(json.dumps(definition))
    monkeypatch.setattr(tokenizer_parts, "LONGEST_PART", 10)
    texts = ["one two\nthree word", "word", "x" * 25 + " one"]
    source = write_jsonl(tmp_path / "a.jsonl", texts)
    tokenize.tokenize([source], tokenizer=str(tmp_path / "tokenizer"), out=tmp_path / "corpus", workers=1)
    opened = Tokenizer.load(tmp_path / "tokenizer")
    found = [opened.decode(ids[:-1]) for ids in read_all(Corpus(tmp_path / "corpus"))]
    assert found == [f" {text}" for text in texts]


def test_a_corpus_inside_its_sources_is_refused(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    write_jsonl(tmp_path / "texts" / "a.jsonl", ["one"])
    with pytest.raises(ValueError, match=r"corpus lies in .*texts, .* choose a folder outside"):
        tokenize.tokenize(
            [str(tmp_path / "texts")], tokenizer=str(tokenizer), out=tmp_path / "texts" / "new" / "corpus"
        )
    assert [path.name for path in (tmp_path / "texts").iterdir()] == ["a.jsonl"]


def test_parquet_without_rows_or_with_other_bytes_is_named(tokenizer: Path, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.ParquetWriter(tmp_path / "none.parquet", pyarrow.schema([("text", pyarrow.string())])).close()
    wrong = pyarrow.array([b"\xff\xfe"], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"text": wrong}), tmp_path / "bytes.parquet")
    for name, told in (
        ("none", "none.parquet; name files"),
        ("bytes", "bytes.parquet holds what is not UTF"),
    ):
        with pytest.raises(ValueError, match=told):
            tokenize.tokenize(
                [str(tmp_path / f"{name}.parquet")], tokenizer=str(tokenizer), out=tmp_path / name, workers=1
            )


def test_a_separator_is_a_whole_line_whatever_blanks_are_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LONGEST_PART", 8)
    (tmp_path / "a.txt").write_text("one\n  ---\ntwotwotw---\nthree\n")
    for separator in ("---", " --- "):
        texts, text = [], ""
        for part in documents.read_text(tmp_path / "a.txt", separator):
            text += part.text
            if part.last:
                texts, text = [*texts, text], ""
        assert texts == ["one\n", "twotwotw---\nthree\n"]
