"""The mean of checkpoints: of one family and shape, tensor by tensor.

    merge([Path("rm-1"), Path("rm-2")], Path("rm"))                   # foresail merge rm-1 rm-2 --out rm
    merge([Path("old"), Path("new")], Path("both"), weights=[1, 3])   # a quarter of the one, the rest of the other

Only models that were trained from one start have a useful mean. Files are read and written one tensor at a time.
Shards, config and tokenizer are the first model's.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foresail.model.hf import locate_tensors, open_weights
from foresail.model.weights import as_bytes
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.shape.hf_files import read_json
from foresail.runlog.atomic import replacing_directory

SHORTEST_CONTEXT = 1  # no sliding window matters to a mean


@dataclass(frozen=True, kw_only=True)
class TensorEntry:
    """A tensor as its file describes it; `dtype` is safetensors' name."""

    dtype: str
    sizes: tuple[int, ...]


def merge(sources: Sequence[Path], target: Path, *, weights: Sequence[float] | None = None) -> list[str]:
    """Write the mean, of weight 1 each or as given, to a new folder. The notes say what differs besides weights."""
    shares = check_weights(weights or [1.0] * len(sources), len(sources))
    if target.exists():
        raise FileExistsError(f"{target} is already there; remove it, or choose another folder")
    for source in sources:
        refuse_adapter(source)
    places = [locate_tensors(source) for source in sources]
    entries = [
        {name: entry for file in files_of(place) for name, entry in read_entries(file)} for place in places
    ]
    for source, place, own_entries in zip(sources[1:], places[1:], entries[1:], strict=True):
        check_alike(sources[0], source, entries[0], own_entries)
        assert place.keys() == own_entries.keys()
    notes = [note for source in sources[1:] for note in compare_tokenizers(sources[0], source)]
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_directory(target) as new_folder, ExitStack() as opened:
        files = {
            file: opened.enter_context(open_weights(file)) for place in places for file in files_of(place)
        }

        def mean(name: str) -> Tensor:
            tensors = (files[place[name]].get_tensor(name) for place in places)
            return mean_of(name, tensors, shares)

        for file in files_of(places[0]):
            names = {name: entries[0][name] for name, own_file in places[0].items() if own_file == file}
            write_tensors(new_folder / file.name, names, mean)
        for other in plain_files(sources[0]):
            shutil.copyfile(other, new_folder / other.name)
    return notes


def check_weights(weights: Sequence[float], sources: int) -> list[float]:
    """As shares of one."""
    if sources < 2:
        raise ValueError("a mean is of two checkpoints or more; name another one")
    if len(weights) != sources:
        raise ValueError(f"{len(weights)} weights for {sources} checkpoints; give one for each")
    total = sum(weights)
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not total > 0:
        raise ValueError(
            f"weights {', '.join(f'{w:g}' for w in weights)}: take numbers from 0 on, one above 0"
        )
    return [weight / total for weight in weights]


def refuse_adapter(source: Path) -> None:
    if (source / "adapter_config.json").is_file():
        raise ValueError(
            f"{source} holds low-rank pairs, whose mean is not that of the models; name checkpoints that have them "
            "merged, as those of a run are, or merge them with PEFT's merge_and_unload"
        )


def files_of(place: Mapping[str, Path]) -> list[Path]:
    return sorted(set(place.values()))


def read_entries(file: Path) -> Iterator[tuple[str, TensorEntry]]:
    with open_weights(file) as weights:
        for name in weights.keys():  # noqa: SIM118
            part = weights.get_slice(name)
            yield name, TensorEntry(dtype=part.get_dtype(), sizes=tuple(part.get_shape()))


def check_alike(
    first: Path, other: Path, entries: Mapping[str, TensorEntry], other_entries: Mapping[str, TensorEntry]
) -> None:
    """The first difference in shape, names, sizes or dtypes, in words."""
    ours, theirs = (read_shape(path, context=SHORTEST_CONTEXT) for path in (first, other))
    for key in type(ours).model_fields:
        mine, its = getattr(ours, key), getattr(theirs, key)
        if mine != its:
            raise ValueError(
                f"{first} and {other} are no models of one shape: {key} is {mine} and {its}; merge checkpoints "
                "that were trained from the same one"
            )
    for name in sorted(entries.keys() ^ other_entries.keys()):
        has, lacks = (first, other) if name in entries else (other, first)
        raise ValueError(f"{has} has a tensor {name}, which {lacks} lacks; merge checkpoints of one kind")
    for name in sorted(entries):
        one, two = entries[name], other_entries[name]
        if one.sizes != two.sizes:
            raise ValueError(
                f"{name} has shape {list(one.sizes)} in {first} and {list(two.sizes)} in {other}"
            )
        if one.dtype != two.dtype:
            raise ValueError(
                f"{name} is {one.dtype} in {first} and {two.dtype} in {other}; write both in one dtype first: "
                "foresail export SOURCE DIRECTORY --dtype …"
            )


def compare_tokenizers(first: Path, other: Path) -> Iterator[str]:
    """Other words for the ids are a mistake; another chat template is a note."""
    mine, its = (read_if_there(path / "tokenizer.json") for path in (first, other))
    if mine != its:
        where = next(
            (key for key in (mine or {}) if (its or {}).get(key) != (mine or {})[key]), "tokenizer.json"
        )
        raise ValueError(
            f"{first} and {other} have different tokenizers (the first difference is in {where}); the same id "
            "would mean different text: merge checkpoints with one tokenizer"
        )
    if chat_template(first) != chat_template(other):
        yield f"{other} has another chat template; that of {first} is kept"


def read_if_there(file: Path) -> dict[str, Any] | None:
    return read_json(file) if file.is_file() else None


def chat_template(folder: Path) -> Any:
    if (file := folder / "chat_template.jinja").is_file():
        return file.read_text(encoding="utf-8")
    return (read_if_there(folder / "tokenizer_config.json") or {}).get("chat_template")


def mean_of(name: str, tensors: Iterator[Tensor], shares: Sequence[float]) -> Tensor:
    """In float32, rounded once; what is no number with a fraction must be equal."""
    total, dtype = None, None
    for tensor, share in zip(tensors, shares, strict=True):
        if not tensor.is_floating_point():
            if total is not None and not torch.equal(total, tensor):
                raise ValueError(f"{name} holds whole numbers, and they differ; there is no mean of them")
            total, dtype = tensor, tensor.dtype
        elif total is None:
            total, dtype = tensor.float() * share, tensor.dtype
        else:
            total.add_(tensor.float(), alpha=share)
    assert total is not None and dtype is not None
    return total.to(dtype)


def write_tensors(file: Path, entries: Mapping[str, TensorEntry], tensor_of: Callable[[str], Tensor]) -> None:
    """A safetensors file, one tensor after the other: its header says in advance where each will stand."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, entry in entries.items():
        start, end = end, end + math.prod(entry.sizes) * num_bytes(entry.dtype)
        header[name] = {"dtype": entry.dtype, "shape": list(entry.sizes), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data begin at a multiple of 8
    with file.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in entries:
            as_bytes(tensor_of(name)).numpy().tofile(out)


def num_bytes(dtype: str) -> int:
    """num_bytes("BF16") -> 2; num_bytes("F8_E4M3") -> 1."""
    return 1 if dtype == "BOOL" else int("".join(c for c in dtype.partition("_")[0] if c.isdigit())) // 8


def plain_files(folder: Path) -> list[Path]:
    """Config, tokenizer, code and the index of shards; what a run needs to go on lies in a folder of its own."""
    return [file for kind in ("json", "jinja", "model", "txt", "py") for file in folder.glob(f"*.{kind}")]
