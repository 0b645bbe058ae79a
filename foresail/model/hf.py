"""Hugging Face directories in and out: `config.json`, generation_config.json, (sharded) safetensors.

    model = load_model("checkpoints/qwen", dtype=torch.bfloat16, device="cuda")
    save_model(model, "out", special=read_special_ids("checkpoints/qwen"))

Tokenizer files are the tokenizer's own business. Saving is not atomic: write into a fresh folder beside
the goal and rename it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf_names import Part, weight_parts
from foresail.model.lora import LowRankLinear
from foresail.model.rotary import rotary_table
from foresail.model.weights import init_weights
from foresail.recipe.hf_config import (
    NO_SPECIAL_IDS,
    SpecialIds,
    check_family,
    config_from_shape,
    generation_config,
    read_shape,
)
from foresail.recipe.hf_files import WeightIndex, read_typed
from foresail.recipe.shape import ModelShape

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
OLD_ROTARY = "rotary_emb.inv_freq"  # we make our own tables
MIMO_MTP = "model.mtp_layers."  # for predicting several tokens, which is not done here


def build_model(
    shape: ModelShape, *, seed: int, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Decoder:
    """A fresh model; the same seed gives the same weights on every device, up to rounding to `dtype`."""
    check_family(shape)
    model = empty_model(shape, dtype=dtype, device=device)
    init_weights(model, seed)
    return model


def load_model(
    directory: str | Path, *, dtype: torch.dtype, device: torch.device | str, context: int | None = None
) -> Decoder:
    """The checkpoint in `directory`, read tensor by tensor, so memory peaks at the model plus one tensor.

    `context`, the longest sequence you will run, matters only to models with a sliding window.
    """
    directory = Path(directory)
    shape = read_shape(directory, context=context)
    files = locate_tensors(directory)
    check_names(shape, files, directory)
    parts = {part.hf_name: part for part in weight_parts(shape)}
    for file in sorted(set(files.values())):  # before memory is taken for what the config claims
        with open_weights(file) as weights:
            for name in (name for name in parts if files[name] == file):
                check_sizes(parts[name], weights.get_slice(name).get_shape(), file)
    model = empty_model(shape, dtype=dtype, device=device)
    for file in sorted(set(files.values())):
        with open_weights(file) as weights:
            for name in (name for name in parts if files[name] == file):
                fill(model, parts[name], weights.get_tensor(name), file)
    if shape.tied and "lm_head.weight" in files:
        check_tied(model, files["lm_head.weight"])
    return model


def check_vocabulary(shape: ModelShape, num_ids: int) -> None:
    """`num_ids`: the tokenizer's largest id plus one. A larger embedding, padded for speed, is fine."""
    if num_ids > shape.vocab_size:
        raise ValueError(
            f"the tokenizer has {num_ids} ids but the model only {shape.vocab_size} embedding rows; use the "
            f"tokenizer that belongs to the model, or a model with vocab_size {num_ids} or more"
        )


def empty_model(shape: ModelShape, *, dtype: torch.dtype, device: torch.device | str) -> Decoder:
    """A decoder whose weights are yet to be written; skips the costly default initialisation."""
    with torch.device("meta"):
        model = Decoder(shape)
    model.to(dtype).to_empty(device=device)
    # The tables stay float32: a later cast to float32 could not bring back what bfloat16 lost.
    cos, sin = rotary_table(shape)
    model.cos, model.sin = cos.to(device), sin.to(device)
    return model


def locate_tensors(directory: Path) -> dict[str, Path]:
    """Hugging Face tensor name -> the file that holds it."""
    single, index = directory / SINGLE_FILE, directory / INDEX_FILE
    if single.is_file():
        with open_weights(single) as weights:
            return dict.fromkeys(weights.keys(), single)
    if index.is_file():
        names = read_typed(index, WeightIndex).weight_map
        if absent := sorted({file for file in names.values() if not (directory / file).is_file()}):
            raise FileNotFoundError(
                f"{directory} lacks {some(absent)}, named in {INDEX_FILE}; fetch the rest"
            )
        return {name: directory / file for name, file in names.items()}
    if any(directory.glob("*.bin")):
        raise FileNotFoundError(
            f"{directory} has weights only as *.bin; convert them: "
            "AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW_DIR)"
        )
    raise FileNotFoundError(f"{directory} has no {SINGLE_FILE} or {INDEX_FILE}; was the download completed?")


@contextmanager
def open_weights(file: Path) -> Iterator[Any]:
    """A memory-mapped safetensors file; whatever is wrong with it names the file."""
    try:
        with safe_open(file, framework="pt") as weights:
            yield weights
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged or cut short ({error}); restore or download it again") from error


def check_names(shape: ModelShape, names: Iterable[str], source: Path) -> None:
    """All tensors the shape needs and no others, but for those of which we make our own or have no use."""
    names = {name for name in names if not name.endswith(OLD_ROTARY) and not name.startswith(MIMO_MTP)}
    needed = {part.hf_name for part in weight_parts(shape)}
    missing, unexpected = needed - names, names - needed
    if shape.tied:
        unexpected.discard("lm_head.weight")
    if missing == {"lm_head.weight"}:
        raise ValueError(
            f"{source} has no lm_head.weight; if the head shares the embedding, set tie_word_embeddings to "
            "true in config.json"
        )
    if missing or unexpected:
        found = [f"{some(missing)} missing"] if missing else []
        found += [f"{some(unexpected)} unexpected"] if unexpected else []
        raise ValueError(
            f"{source} does not match its config as a {shape.family} model with {shape.num_layers} layers: "
            f"{'; '.join(found)}. Use the config.json that came with these weights"
        )


def check_sizes(part: Part, sizes: Sequence[int], source: Path) -> None:
    if tuple(sizes) != part.sizes:
        raise ValueError(
            f"{source}: {part.hf_name} has shape {list(sizes)}, but the config asks for "
            f"{list(part.sizes)}; use the config.json that came with these weights"
        )


@torch.no_grad()
def fill(model: Decoder, part: Part, tensor: Tensor, source: Path) -> None:
    """Copy one Hugging Face tensor to its rows of our parameter."""
    check_sizes(part, tensor.shape, source)
    rows(model, part).copy_(tensor)


def check_tied(model: Decoder, file: Path) -> None:
    """A tied checkpoint may carry its head as well, as long as it is the embedding."""
    with open_weights(file) as weights:
        head_VD = weights.get_tensor("lm_head.weight").to(model.device, model.dtype)
    if not torch.equal(head_VD, model.embed.weight):
        raise ValueError(
            f"{file} holds an lm_head.weight that differs from the embedding, though config.json ties them; "
            "set tie_word_embeddings to false to use it, or delete that tensor"
        )


def save_model(
    model: Decoder,
    directory: str | Path,
    *,
    special: SpecialIds = NO_SPECIAL_IDS,
    dtype: torch.dtype | None = None,
    max_shard_bytes: int = 5_000_000_000,
) -> None:
    """Write what `load_model`, transformers and vLLM read, in its dtype or another one, to a new folder."""
    directory, dtype = Path(directory), dtype or model.dtype
    config = config_from_shape(model.shape, dtype=str(dtype).removeprefix("torch."), special=special)
    directory.mkdir(parents=True, exist_ok=True)
    if old := [file.name for file in directory.glob("*.safetensors*")]:
        # A stale model.safetensors would win over the new shards in every loader.
        raise ValueError(f"{directory} already holds weights ({some(old)}); save into an empty folder")
    write_json(config, directory / "config.json")
    write_json(generation_config(special), directory / "generation_config.json")
    save_tensors(model, directory, dtype, max_shard_bytes)


def save_tensors(model: Decoder, directory: Path, dtype: torch.dtype, max_shard_bytes: int) -> None:
    shards = split_shards(model, dtype, max_shard_bytes)
    files = [SINGLE_FILE]
    if len(shards) > 1:
        files = [f"model-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)]
    for file, parts in zip(files, shards, strict=True):
        tensors = {
            part.hf_name: merged_rows(model, part).detach().to("cpu", dtype, copy=True) for part in parts
        }
        save_file(tensors, directory / file, metadata={"format": "pt"})
        # safetensors leaves files only their owner can read; give them the mode other files get here.
        shutil.copymode(directory / "config.json", directory / file)
    if len(shards) > 1:
        weight_map = {part.hf_name: file for file, parts in zip(files, shards, strict=True) for part in parts}
        total = sum(num_bytes(model, part, dtype) for parts in shards for part in parts)
        write_json({"metadata": {"total_size": total}, "weight_map": weight_map}, directory / INDEX_FILE)


def split_shards(model: Decoder, dtype: torch.dtype, max_shard_bytes: int) -> list[list[Part]]:
    """Consecutive tensors, as many to a shard as fit; a tensor too big for any has one to itself."""
    shards: list[list[Part]] = [[]]
    left = max_shard_bytes
    for part in weight_parts(model.shape):
        size = num_bytes(model, part, dtype)
        if shards[-1] and size > left:
            shards.append([])
            left = max_shard_bytes
        shards[-1].append(part)
        left -= size
    return shards


def rows(model: Decoder, part: Part) -> Tensor:
    """The rows of our parameter that `part` is."""
    return model.get_parameter(part.parameter).narrow(0, part.start, part.sizes[0])


def merged_rows(model: Decoder, part: Part) -> Tensor:
    """The same with what low-rank pairs have learned beside them, so that they need no pairs elsewhere."""
    owner, _, leaf = part.parameter.rpartition(".")
    matrix = model.get_submodule(owner)
    if isinstance(matrix, LowRankLinear) and leaf == "weight":
        return matrix.merged(part.start, part.sizes[0])
    return rows(model, part)


def num_bytes(model: Decoder, part: Part, dtype: torch.dtype) -> int:
    return rows(model, part).numel() * dtype.itemsize


def write_json(content: Mapping[str, Any], file: Path) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def some(names: Iterable[str]) -> str:
    """some(["a", "b", "c", "d", "e"]) -> "a, b, c and 2 more"."""
    names = sorted(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
