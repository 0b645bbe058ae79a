"""Texts to a corpus of token shards, on all cores; stopped or killed, the same call goes on with what is left.

    tokenize(["web.jsonl", "books/"], tokenizer="checkpoints/qwen", out=Path("corpora/mix"))

The sources are cut into pieces, one shard each (`documents.py`), so that neither the number of processes nor kills
change a byte of what comes out. `plan.json` and receipts stand in the folder until the manifest takes their place.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.data.corpus.documents import Piece, TextForm, cut_pieces, describe_file, find_files
from foresail.data.corpus.shard_writer import RECEIPT, Receipt, receipt_file, shard_name, write_shard
from foresail.recipe.tables.corpus import (
    MANIFEST,
    CorpusError,
    Manifest,
    ShardEntry,
    fingerprint,
    read_manifest,
    size_mistakes,
)
from foresail.runlog.atomic import clean_leftovers, explained, write_text
from foresail.runlog.lock import lock_folder
from foresail.signals import shielded_from_interrupts
from foresail.tokenizer.documents import DocumentEncoder
from foresail.tokenizer.tokenizer import Tokenizer

PIECE_BYTES = 64 * 2**20  # of text; a shard has about half as many, or a quarter
PLAN = "plan.json"
USUAL = TextForm()
SMALL_VOCABULARY = 2**16  # ids that fit two bytes


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a process needs to make any shard."""

    folder: Path
    pieces: tuple[Piece, ...]
    form: TextForm
    tokenizer: str
    special_tokens: bool


def tokenize(
    sources: list[str],
    *,
    tokenizer: str,
    out: Path,
    form: TextForm = USUAL,
    special_tokens: bool = False,
    workers: int = 0,
    piece_bytes: int = PIECE_BYTES,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> Manifest:
    """`note` hears how many of all pieces are done. `workers` 0: one for every core."""
    files = find_files(sources)
    opened = Tokenizer.load(tokenizer)
    request = {
        "format": 1,
        "sources": [describe_file(file) for file in files],
        "tokenizer": fingerprint(opened.files.definition),
        "end": opened.eos_ids[0],
        "text_key": form.key,
        "separator": form.separator,
        "special_tokens": special_tokens,
        "piece_bytes": piece_bytes,
    }
    check_folder(out, sources)
    with explained(out), lock_folder(out):
        if (done := made_before(out, request)) is not None:
            return done
        begin_plan(out, request)
        clean_leftovers(out)
        pieces = tuple(piece for file in files for piece in cut_pieces(file, piece_bytes))
        job = Job(folder=out, pieces=pieces, form=form, tokenizer=tokenizer, special_tokens=special_tokens)
        make_shards(job, workers or len(os.sched_getaffinity(0)), note)
        manifest = conclude(job, request, opened)
        remove_plan(out)
    return manifest


def check_folder(out: Path, sources: list[str]) -> None:
    """Nothing of somebody else's is written over, and the same call finds the same sources again."""
    for source in map(Path, sources):
        if source.is_dir() and source.resolve() in out.resolve().parents:
            raise ValueError(
                f"{out} lies in {source}, and its own files would count as texts; choose a folder outside"
            )
    if not out.is_dir() or (out / PLAN).exists() or (out / MANIFEST).exists():
        return
    if foreign := sorted(path.name for path in out.iterdir() if not path.name.startswith(".")):
        raise FileExistsError(f"{out} holds {foreign[0]} and is no corpus; choose another folder")


def made_before(out: Path, request: dict[str, Any]) -> Manifest | None:
    """The corpus, where this call was made before."""
    if not (out / MANIFEST).exists():
        return None
    manifest = read_manifest(out)
    if manifest.request != checksum(request):
        raise FileExistsError(
            f"{out} is a corpus already, of other sources, another tokenizer or other options; choose another "
            "folder, or remove it"
        )
    if mistake := next(size_mistakes(out, manifest), None):
        raise CorpusError(mistake)
    remove_plan(out)
    return manifest


def begin_plan(out: Path, request: dict[str, Any]) -> None:
    """Of one that was begun before, shards are kept up to the first source that has other contents now."""
    plan = out / PLAN
    begun = json.loads(plan.read_text(encoding="utf-8")) if plan.exists() else None
    if begun is not None and begun != request:
        remove_shards(out, first=pieces_before(first_changed(out, begun, request), request))
    if begun != request:
        write_text(plan, json.dumps(request, indent=1, ensure_ascii=False) + "\n")


def first_changed(out: Path, begun: dict[str, Any], request: dict[str, Any]) -> int:
    """Which source has other contents than when the plan was made; nothing else may have changed."""
    keys = [name for name in {**begun, **request} if begun.get(name) != request.get(name)]
    paths = [[entry["path"] for entry in side["sources"]] for side in (begun, request)]
    if keys != ["sources"] or paths[0] != paths[1]:
        changed = "other sources" if keys[0] == "sources" else f"another {keys[0].replace('_', ' ')}"
        raise ValueError(
            f"{out} was begun with {changed}; give the same sources, tokenizer and options as then to go on, or "
            "remove the folder"
        )
    pairs = zip(begun["sources"], request["sources"], strict=True)
    return next(number for number, (then, now) in enumerate(pairs) if then != now)


def pieces_before(source: int, request: dict[str, Any]) -> int:
    files = [Path(entry["path"]) for entry in request["sources"][:source]]
    return sum(1 for file in files for _ in cut_pieces(file, request["piece_bytes"]))


def make_shards(job: Job, workers: int, note: Callable[[int, int], None]) -> None:
    """Those that have no receipt. Of two processes each takes the next piece that nobody has taken."""
    left = [n for n in range(len(job.pieces)) if not receipt_file(job.folder, n).exists()]
    workers = min(workers, len(left))
    total = len(job.pieces)
    note(total - len(left), total)
    if workers <= 1:
        encoder, id_type = open_encoder(job)
        for done, number in enumerate(left, start=1):
            write_shard(job.folder, number, job.pieces[number], job.form, encoder, id_type)
            note(total - len(left) + done, total)
        return
    processes = multiprocessing.get_context("spawn")
    taken, failures = processes.Value("q", 0), processes.SimpleQueue()
    everyone = [
        processes.Process(target=work, args=(job, left, taken, failures, os.getpid()), daemon=True)
        for _ in range(workers)
    ]
    with shielded_from_interrupts():
        for process in everyone:
            process.start()
    try:
        while any(process.is_alive() for process in everyone):
            next(process for process in everyone if process.is_alive()).join(timeout=0.5)
            note(sum(receipt_file(job.folder, n).exists() for n in range(total)), total)
            if not failures.empty():
                break
    finally:
        for process in everyone:
            process.terminate()
            process.join()
    if not failures.empty():
        raise ValueError(failures.get())
    if missing := [n for n in left if not receipt_file(job.folder, n).exists()]:
        codes = sorted({process.exitcode for process in everyone if process.exitcode})
        raise ValueError(
            f"a worker process died (exit codes {codes}) and {len(missing)} of {total} pieces are not done; the "
            "same command goes on with them, with fewer --workers if memory was short"
        )


def work(job: Job, left: list[int], taken: Any, failures: Any, parent: int) -> None:
    """A process: pieces until none is left, or nobody waits for them."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every core has a process of its own
    try:
        encoder, id_type = open_encoder(job)
        while os.getppid() == parent:
            with taken.get_lock():
                place = taken.value
                taken.value += 1
            if place >= len(left):
                return
            number = left[place]
            write_shard(job.folder, number, job.pieces[number], job.form, encoder, id_type)
    except (ValueError, OSError, ImportError) as error:
        failures.put(str(error))


def open_encoder(job: Job) -> tuple[DocumentEncoder, str]:
    tokenizer = Tokenizer.load(job.tokenizer)
    return DocumentEncoder(tokenizer, special_tokens=job.special_tokens), id_type_of(tokenizer.vocab_size)


def id_type_of(vocab_size: int) -> str:
    return "uint16" if vocab_size <= SMALL_VOCABULARY else "uint32"


def conclude(job: Job, request: dict[str, Any], tokenizer: Tokenizer) -> Manifest:
    """All receipts as one manifest, which makes the folder a corpus."""
    receipts = {
        number: Receipt(**json.loads(receipt_file(job.folder, number).read_text(encoding="utf-8")))
        for number in range(len(job.pieces))
    }
    shards = [
        ShardEntry(
            name=shard_name(number),
            documents=receipt.documents,
            tokens=receipt.tokens,
            tokens_checksum=receipt.tokens_checksum,
            ends_checksum=receipt.ends_checksum,
        )
        for number, receipt in receipts.items()
        if receipt.documents
    ]
    every = receipts.values()
    empty = sum(receipt.empty for receipt in every)
    if not shards:
        files = ", ".join(entry["path"] for entry in request["sources"])
        raise ValueError(
            f"the sources hold no text ({empty} empty documents): {files}; name files with documents in them"
        )
    manifest = Manifest(
        format=1,
        tokenizer=str(request["tokenizer"]),
        vocab_size=tokenizer.vocab_size,
        id_type="uint16" if id_type_of(tokenizer.vocab_size) == "uint16" else "uint32",
        request=checksum(request),
        sources=[entry["path"] for entry in request["sources"]],
        documents=sum(receipt.documents for receipt in every),
        tokens=sum(receipt.tokens for receipt in every),
        longest=max(receipt.longest for receipt in every),
        empty=empty,
        mended=sum(receipt.mended for receipt in every),
        shards=shards,
    )
    write_text(job.folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
    return manifest


def remove_shards(folder: Path, first: int) -> None:
    """Those from this piece on, receipts before what they are for."""
    for file in sorted(folder.glob("shard-*"), key=lambda file: not file.name.endswith(RECEIPT)):
        if int(file.name.removeprefix("shard-").partition(".")[0]) >= first:
            file.unlink()


def remove_plan(folder: Path) -> None:
    """And receipts: the manifest has taken their place."""
    for file in (*folder.glob(f"shard-*{RECEIPT}"), folder / PLAN):
        file.unlink(missing_ok=True)


def checksum(request: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
