"""Checks of a run's inputs before it starts: checkpoint, tokenizer, data. They yield errors with what to do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from foresail.recipe.shape.hf_files import WeightIndex, read_typed
from foresail.recipe.shape.model_shape import ModelShape

BUILT_IN_TEMPLATES = ("hybrid", "hybrid-short")  # chat templates of our own: tokenizer/thinking.py

# Larger files would take longer than the second that a check may take.
LARGEST_TOKENIZER = 20_000_000
LARGEST_COUNTED = 50_000_000
BUILT_IN_SOURCES = (
    "arithmetic",
    "multi-hop",
    "passage-qa",
    "programs",
    "reasoning-gym",
    "shop-tasks",
    "word-problems",
)
SHARDS = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".jsonl.zst", ".parquet")  # those that a folder is read for
SUFFIXES = (*SHARDS, ".json", ".json.gz")


def check_weights(directory: Path) -> Iterator[str]:
    """All shards exist, each as long as its header says: this finds a broken download in milliseconds."""
    single, index = directory / "model.safetensors", directory / "model.safetensors.index.json"
    if single.is_file():
        files = [single]
    elif index.is_file():
        try:
            shards = read_typed(index, WeightIndex).weight_map.values()
        except ValueError as error:
            yield str(error)
            return
        files = sorted({directory / shard for shard in shards})
    else:
        yield f"{directory} has neither {single.name} nor {index.name}; finish its download, or convert it"
        return
    for file in files:
        if not file.is_file():
            yield f"{file} is missing, though {index.name} names it; download it again"
        elif not is_whole_safetensors(file):
            yield f"{file} is damaged or cut off; download it again"


def is_whole_safetensors(file: Path) -> bool:
    """8 bytes with the header's length, the header in JSON, then data up to its last offset."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > file.stat().st_size:
            return False
        try:
            header = json.loads(stream.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return False
    if not all(type(end) is int for end in ends):
        return False
    return file.stat().st_size == 8 + length + max(ends, default=0)


def check_tokenizer(
    directory: Path, shape: ModelShape | None, template: str | None = None, *, chats: bool = True
) -> Iterator[str]:
    """`chats`: whether it must have a chat template."""
    file = directory / "tokenizer.json"
    if not file.is_file():
        yield f"{directory} has no tokenizer.json; set model.tokenizer to a directory that has one"
        return
    try:
        size = tokenizer_size(file)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        yield f"{file} is not a tokenizer in JSON; restore it, or set model.tokenizer to another directory"
        return
    if size is not None and shape is not None and size > shape.vocab_size:
        yield (
            f"{file} has ids up to {size - 1}, but the model's vocabulary is {shape.vocab_size}; "
            "set model.tokenizer to the tokenizer the model was trained with"
        )
    if template is not None:
        if template not in BUILT_IN_TEMPLATES and not Path(template).is_file():
            yield (
                f"model.chat_template {template} is not a file; name one with a chat template in Jinja, "
                f"or one of {', '.join(BUILT_IN_TEMPLATES)}"
            )
    elif chats and not has_chat_template(directory):
        yield (
            f"{directory} has no chat template, and prompts are chat messages; add a chat_template.jinja, "
            "such as that of an instruct model of the same family"
        )


def has_chat_template(directory: Path) -> bool:
    """Whether it is in a file of its own or in the tokenizer's settings; True if these cannot be read."""
    settings = directory / "tokenizer_config.json"
    if (directory / "chat_template.jinja").is_file():
        return True
    try:
        return not settings.is_file() or bool(
            json.loads(settings.read_text(encoding="utf-8"))["chat_template"]
        )
    except KeyError:
        return False
    except (ValueError, TypeError, RecursionError):
        return True


def tokenizer_size(file: Path) -> int | None:
    """One more than the largest id, added tokens included; None if the file is too large to read here."""
    if file.stat().st_size > LARGEST_TOKENIZER:
        return None
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    vocab = content["model"]["vocab"]  # Unigram lists its tokens, the others map them to ids
    ids = vocab.values() if isinstance(vocab, dict) else range(len(vocab))
    added = [token["id"] for token in content.get("added_tokens") or ()]
    if not all(type(number) is int for number in (*ids, *added)):
        raise ValueError(f"{file} has ids that are not whole numbers")
    return max([*ids, *added], default=-1) + 1


def check_wandb() -> Iterator[str]:
    """Whether it is installed, and logged in or offline; else it would ask or fail after the run has started."""
    if find_spec("wandb") is None:
        yield "run.wandb is set, but Weights & Biases is not installed; pip install 'foresail[wandb]'"
    elif not (os.environ.get("WANDB_API_KEY") or wandb_is_offline() or wandb_is_logged_in()):
        yield (
            "run.wandb is set, but nobody is logged in to Weights & Biases; run `wandb login`, set "
            "WANDB_API_KEY, set WANDB_MODE=offline to log into the run's folder, or leave run.wandb out"
        )


def wandb_is_offline() -> bool:
    return os.environ.get("WANDB_MODE", "").lower() in ("offline", "disabled", "dryrun")


def wandb_is_logged_in() -> bool:
    """Where `wandb login` writes: a netrc file with an entry for the service's host."""
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname
    files = (os.environ.get("NETRC"), "~/.netrc", "~/_netrc")
    for file in (Path(name).expanduser() for name in files if name):
        try:
            if host and netrc(file).authenticators(host):
                return True
        except (OSError, NetrcParseError):
            continue
    return False


def check_source(key: str, source: str) -> Iterator[str]:
    """`key` is where the recipe names it: "data.source arithmetc:3 …"."""
    name, colon, rest = source.partition(":")
    if name in BUILT_IN_SOURCES:
        yield from check_built_in(key, name, rest)
        return
    file = Path(source)
    if not file.exists():
        near = get_close_matches(name, BUILT_IN_SOURCES, n=1)
        hint = f"did you mean {near[0]}{colon}{rest}?" if near else "check the path"
        yield f"{key} {source} does not exist (looked in {Path.cwd()}); {hint}"
    elif file.is_dir():
        files = data_files(file)
        if not files:
            yield f"{key} {source} is a folder without data files ({', '.join(SHARDS)}); name another one"
        for part in files:
            yield from check_file(key, str(part), part)
    else:
        yield from check_file(key, source, file)


def data_files(folder: Path) -> list[Path]:
    """The files of rows in a folder, such as a curation's output, by their names; not those of folders in it."""
    names = sorted(file.name for file in folder.iterdir() if file.is_file())
    return [folder / name for name in names if name.endswith(SHARDS) and not name.startswith(".")]


def check_file(key: str, source: str, file: Path) -> Iterator[str]:
    if not file.is_file():
        yield f"{key} {source} is not a file; name one JSONL or parquet file, or a folder of them"
    elif not file.name.endswith(SUFFIXES):
        yield f"{key} {source} is none of {', '.join(SUFFIXES)}; convert it to one of these"
    elif file.stat().st_size == 0:
        yield f"{key} {source} is empty; it needs at least one record"
    elif file.suffix == ".parquet":
        yield from check_parquet(key, file)
    elif file.suffix == ".jsonl":
        yield from check_lines(key, file)


def check_built_in(key: str, name: str, rest: str) -> Iterator[str]:
    if name != "reasoning-gym" and "count=" not in rest:
        yield f"{key} {name} needs a count; write {name}:count=2000"
    if name == "reasoning-gym":
        if not rest:
            yield f"{key} {name} names no task; write it after a colon, like reasoning-gym:chain_sum"
        if find_spec("reasoning_gym") is None:
            yield f"{key} needs reasoning-gym; pip install 'foresail[gym]'"


def check_parquet(key: str, file: Path) -> Iterator[str]:
    content = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(4)
        stream.seek(max(content - 4, 0))
        tail = stream.read(4)
    if head != b"PAR1" or tail != b"PAR1":
        yield f"{key} {file} is not a whole parquet file; write or download it again"
    if find_spec("pyarrow") is None:
        yield f"{key} {file} needs pyarrow; pip install 'foresail[parquet]', or convert it to JSONL"


def check_lines(key: str, file: Path) -> Iterator[str]:
    first = first_line(file)
    if not first:
        yield f"{key} {file} holds only blank lines; it needs one JSON object per line"
        return
    if first.startswith(b"["):  # one long list, which the reader takes as well
        return
    try:
        record = json.loads(first)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        yield f"{key} {file}: its first line is not a JSON object; it needs one per line"


def first_line(file: Path) -> bytes:
    """The first line that is not blank, without the mark some editors put before it."""
    with file.open("rb") as stream:
        lines = (line.removeprefix(b"\xef\xbb\xbf").strip() for line in stream)
        return next((line for line in lines if line), b"")


def count_records(source: str) -> int | None:
    """Number of records of a JSONL file or a generator; None if it cannot be counted quickly."""
    name, _, settings = source.partition(":")
    if name in BUILT_IN_SOURCES:
        count = re.search(r"\b(?:count|size)=(\d+)", settings)
        return int(count[1]) if count else None
    file = Path(source)
    if file.suffix != ".jsonl" or not file.is_file() or file.stat().st_size > LARGEST_COUNTED:
        return None
    if first_line(file).startswith(b"["):
        return None
    with file.open("rb") as stream:
        return sum(1 for line in stream if line.strip())


def default_name(source: str) -> str:
    """default_name("data/gsm8k/train.jsonl.gz") -> "train"; of "reasoning-gym:chain_sum,size=9" -> "chain_sum"."""
    name, _, rest = source.partition(":")
    if name in BUILT_IN_SOURCES:
        return rest.partition(",")[0] if name == "reasoning-gym" else name
    return Path(source).name.partition(".")[0]


def reach(columns: Any, key: str, missing: Any = None) -> Any:
    """A column of a row, also inside another: reach({"model": {"answer": "4"}}, "model.answer") -> "4"."""
    if isinstance(columns, Mapping) and key in columns:
        return columns[key]
    for part in key.split("."):
        if not isinstance(columns, Mapping) or part not in columns:
            return missing
        columns = columns[part]
    return columns
