"""Tokenizes texts to a corpus of shards, on all cores; stopped or killed, the same call resumes.

    tokenize(["web.jsonl", "books/"], tokenizer="checkpoints/qwen", out=Path("corpora/mix"))

The sources are cut into pieces, one shard each (`documents.py`), so that neither the number of processes nor kills
change a byte of what comes out. `plan.json` and receipts stand in the folder until the manifest takes their place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from foresail.data.corpus.documents import (
    Piece,
    TextForm,
    cut_pieces,
    describe_file,
    find_files,
    read_piece,
)
from foresail.data.corpus.shard_writer import Receipt, write_shard
from foresail.data.jobs.plan import PLAN, changed_source, write_plan
from foresail.data.jobs.pool import RECEIPT, run_pieces
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
from foresail.tokenizer.choose_encoder import EncoderChoice, choose_encoder
from foresail.tokenizer.documents import DocumentEncoder, EncoderName
from foresail.tokenizer.tokenizer import Tokenizer

PIECE_BYTES = 64 * 2**20  # of text; a shard has about half as many, or a quarter
USUAL = TextForm()
SAMPLED_FILES, SAMPLED_TEXTS = 16, 64  # on which encoders are compared
SMALL_VOCABULARY = 2**16  # ids that fit two bytes


@dataclass(frozen=True, kw_only=True)
class TokenizeJob:
    """The settings that every process needs to write shards."""

    folder: Path
    form: TextForm
    tokenizer: str
    special_tokens: bool
    encoder: EncoderName


def tokenize(
    sources: list[str],
    *,
    tokenizer: str,
    out: Path,
    form: TextForm = USUAL,
    special_tokens: bool = False,
    workers: int = 0,
    piece_bytes: int = PIECE_BYTES,
    encoder: EncoderChoice = "tokenizers",
    note: Callable[[int, int], None] = lambda done, total: None,
    say: Callable[[str], None] = lambda message: None,
) -> Manifest:
    """`note` is called with the finished and total pieces. `workers` 0: one for every core.

    The encoders give the same ids, so that a stopped call may go on with another one. `say` hears why `auto` does
    not use gigatoken.
    """
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
        cut = (piece for file in files for piece in cut_pieces(file, piece_bytes))
        pieces = {f"shard-{number:05}": piece for number, piece in enumerate(cut)}
        chosen, reason = choose_encoder(
            encoder, opened, sample_of(files, form), special_tokens=special_tokens
        )
        if reason is not None:
            say(reason)
        job = TokenizeJob(
            folder=out, form=form, tokenizer=tokenizer, special_tokens=special_tokens, encoder=chosen
        )
        receipts = run_pieces(pieces, partial(open_writer, job), folder=out, workers=workers, note=note)
        counts = {name: Receipt(**receipt) for name, receipt in receipts.items()}
        manifest = write_manifest(out, counts, request, opened)
        remove_plan(out)
    return manifest


def sample_of(files: list[Path], form: TextForm) -> Iterator[str]:
    """The first texts of some of the files, spread over all of them; drawn only where an encoder is compared."""
    for file in files[:: -(-len(files) // SAMPLED_FILES)]:
        first = next(cut_pieces(file, PIECE_BYTES))
        for part in islice(read_piece(first, form), SAMPLED_TEXTS):
            yield part.text.encode(errors="replace").decode()


def check_folder(out: Path, sources: list[str]) -> None:
    """Raise where files of others would be overwritten, or where `out` lies among the sources."""
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
    """The finished corpus of an earlier equal call, or None."""
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
    """Write the plan; shards of an earlier call stay up to the first source that has changed."""
    if (source := changed_source(out, request)) is not None:
        remove_shards(out, first=pieces_before(source, request))
    write_plan(out, request)


def pieces_before(source: int, request: dict[str, Any]) -> int:
    files = [Path(entry["path"]) for entry in request["sources"][:source]]
    return sum(1 for file in files for _ in cut_pieces(file, request["piece_bytes"]))


def open_writer(job: TokenizeJob) -> Callable[[str, Piece], dict[str, Any]]:
    """In every process: the function that writes one shard."""
    tokenizer = Tokenizer.load(job.tokenizer)
    encoder = DocumentEncoder(tokenizer, special_tokens=job.special_tokens, encoder=job.encoder)
    id_type = id_type_of(tokenizer.vocab_size)

    def write(name: str, piece: Piece) -> dict[str, Any]:
        return asdict(write_shard(job.folder, name, piece, job.form, encoder, id_type))

    return write


def id_type_of(vocab_size: int) -> str:
    return "uint16" if vocab_size <= SMALL_VOCABULARY else "uint32"


def write_manifest(
    folder: Path, receipts: dict[str, Receipt], request: dict[str, Any], tokenizer: Tokenizer
) -> Manifest:
    """Write the manifest from all receipts; the folder is then a corpus."""
    shards = [
        ShardEntry(
            name=name,
            documents=receipt.documents,
            tokens=receipt.tokens,
            tokens_checksum=receipt.tokens_checksum,
            ends_checksum=receipt.ends_checksum,
        )
        for name, receipt in receipts.items()
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
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
    return manifest


def remove_shards(folder: Path, first: int) -> None:
    """Remove shards from number `first` on, each after its receipt."""
    for file in sorted(folder.glob("shard-*"), key=lambda file: not file.name.endswith(RECEIPT)):
        if int(file.name.removeprefix("shard-").partition(".")[0]) >= first:
            file.unlink()


def remove_plan(folder: Path) -> None:
    """Remove plan and receipts, which the manifest replaces."""
    for file in (*folder.glob(f"shard-*{RECEIPT}"), folder / PLAN):
        file.unlink(missing_ok=True)


def checksum(request: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
