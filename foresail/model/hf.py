"""Loads and saves Hugging Face directories: `config.json`, generation_config.json, (sharded) safetensors.

    model = load_model("checkpoints/qwen", dtype=torch.bfloat16, device="cuda")
    save_model(model, "out", special=read_special_ids("checkpoints/qwen"))

Tokenizer files are saved by the tokenizer. Saving is not atomic: write into a new folder beside the target and
rename it.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf_names import MTP_LAYERS, SCORE_HEAD, TensorPart, weight_parts
from foresail.model.lora import LowRankLinear
from foresail.model.rotary import rotary_table
from foresail.model.shards import gather_whole, local, own_rows, put_rows
from foresail.model.weights import init_weights
from foresail.recipe.shape.hf_config import (
    NO_SPECIAL_IDS,
    SpecialIds,
    check_family,
    config_from_shape,
    generation_config,
    read_shape,
)
from foresail.recipe.shape.hf_files import WeightIndex, read_typed
from foresail.recipe.shape.hf_unused import read_unused
from foresail.recipe.shape.model_shape import ModelShape
from foresail.world import ONE_PROCESS, World

Arrange = Callable[[Decoder], None]  # of a model without memory
SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
OLD_ROTARY = "rotary_emb.inv_freq"  # we make our own tables
# Of fresh score heads, whatever a run's seed: reward models from one start can be averaged, see `merge`.
HEAD_SEED = 0


def build_model(
    shape: ModelShape,
    *,
    seed: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    arrange: Arrange | None = None,
) -> Decoder:
    """A fresh model; the same seed gives the same weights on every device, up to rounding to `dtype`."""
    check_family(shape)
    model = empty_model(shape, dtype=dtype, device=device, arrange=arrange)
    init_weights(model, seed)
    return model


def load_model(
    directory: str | Path,
    *,
    dtype: torch.dtype,
    device: torch.device | str,
    context: int | None = None,
    arrange: Arrange | None = None,
    mtp_layers: int | None = None,
    scores: bool = False,
) -> Decoder:
    """The checkpoint in `directory`, read tensor by tensor, so memory peaks at the model plus one tensor.

    `context`, the longest sequence you will run, matters to sliding windows and to dynamic positions. `arrange`
    changes the model before it has memory: where that shards it, a rank reads the rows that it has. Of its MTP
    layers the first `mtp_layers` are loaded; None: all. With `scores` it is a reward model; a language model
    becomes one, with a fresh head.
    """
    directory = Path(directory)
    saved = read_shape(directory, context=context, mtp_layers=mtp_layers)
    if saved.scores and not scores:
        raise ValueError(
            f"{directory} is a reward model: it gives scores and no words; name a language model"
        )
    files = locate_tensors(directory)
    check_names(saved, files, directory)
    shape = saved
    if scores:
        shape = saved.with_score()
        check_family(shape)
    parts = {part.hf_name: part for part in weight_parts(shape) if part.hf_name in files}
    for file in sorted(set(files.values())):  # before memory is taken for what the config claims
        with open_weights(file) as weights:
            for name in (name for name in parts if files[name] == file):
                check_sizes(parts[name], weights.get_slice(name).get_shape(), file)
    model = empty_model(shape, dtype=dtype, device=device, arrange=arrange)
    model.unused = read_unused(directory)
    for file in sorted(set(files.values())):
        with open_weights(file) as weights:
            for name in (name for name in parts if files[name] == file):
                fill_rows(model, parts[name], weights.get_slice(name))
    if shape.tied and "lm_head.weight" in files:
        check_tied(model, files["lm_head.weight"])
    if shape.scores and SCORE_HEAD not in files:
        init_weights(model, HEAD_SEED, only="head.")
    return model


def check_vocabulary(shape: ModelShape, num_ids: int) -> None:
    """`num_ids`: the tokenizer's largest id plus one. A larger embedding, padded for speed, is fine."""
    if num_ids > shape.vocab_size:
        raise ValueError(
            f"the tokenizer has {num_ids} ids but the model only {shape.vocab_size} embedding rows; use the "
            f"tokenizer that belongs to the model, or a model with vocab_size {num_ids} or more"
        )


def empty_model(
    shape: ModelShape,
    *,
    dtype: torch.dtype,
    device: torch.device | str,
    arrange: Arrange | None = None,
) -> Decoder:
    """A decoder whose weights are yet to be written; skips the costly default initialisation."""
    with torch.device("meta"):
        model = Decoder(shape)
    model.to(dtype)
    if arrange is not None:
        arrange(model)
    model.to_empty(device=device)
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
                f"{directory} lacks {list_names(absent)}, named in {INDEX_FILE}; fetch the rest"
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
    """A memory-mapped safetensors file; errors name the file."""
    try:
        with safe_open(file, framework="pt") as weights:
            yield weights
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged or cut short ({error}); restore or download it again") from error


def check_names(shape: ModelShape, names: Iterable[str], source: Path) -> None:
    """All tensors the shape needs and no others, but for those of which we make our own or have no use."""
    required = {part.hf_name for part in weight_parts(shape)}
    missing = required - set(names)
    unexpected = {name for name in names if not name.endswith(OLD_ROTARY) and not name.startswith(MTP_LAYERS)}
    unexpected -= required
    if shape.tied:
        unexpected.discard("lm_head.weight")
    if missing == {"lm_head.weight"}:
        raise ValueError(
            f"{source} has no lm_head.weight; if the head shares the embedding, set tie_word_embeddings to "
            "true in config.json"
        )
    if missing or unexpected:
        mistakes = [f"{list_names(missing)} missing"] if missing else []
        mistakes += [f"{list_names(unexpected)} unexpected"] if unexpected else []
        raise ValueError(
            f"{source} does not match its config as a {shape.family} model with {shape.num_layers} layers: "
            f"{'; '.join(mistakes)}. Use the config.json that came with these weights"
        )


def check_sizes(part: TensorPart, sizes: Sequence[int], source: Path) -> None:
    if tuple(sizes) != part.sizes:
        raise ValueError(
            f"{source}: {part.hf_name} has shape {list(sizes)}, but the config asks for "
            f"{list(part.sizes)}; use the config.json that came with these weights"
        )


@torch.no_grad()
def fill(model: Decoder, part: TensorPart, tensor: Tensor, source: Path) -> None:
    """Copy one Hugging Face tensor to its rows of our parameter."""
    check_sizes(part, tensor.shape, source)
    put_rows(model.get_parameter(part.parameter), part.start, part.from_hf(tensor))


def fill_rows(model: Decoder, part: TensorPart, saved: Any) -> None:
    """Copy this rank's rows of a tensor in a file."""
    weight = model.get_parameter(part.parameter)
    if part.paired is not None:  # rows that this rank has are no block there
        put_rows(weight, part.start, part.from_hf(saved[:]))
    elif rows := own_rows(weight, part.start, part.sizes[0]):
        put_rows(weight, rows.start, saved[rows.start - part.start : rows.stop - part.start])


def check_tied(model: Decoder, file: Path) -> None:
    """A tied checkpoint may carry its head as well, as long as it is the embedding."""
    with open_weights(file) as weights:
        head_VD = weights.get_tensor("lm_head.weight").to(model.device, model.dtype)
    rows = own_rows(model.embed.weight, 0, len(head_VD))
    if not torch.equal(head_VD[rows.start : rows.stop], local(model.embed.weight)):
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
    world: World = ONE_PROCESS,
) -> None:
    """Write what `load_model`, transformers and vLLM read, in its dtype or another one, to a new folder.

    All ranks call it, and each writes some of the files: none of them ever holds more than one file of weights.
    """
    directory, dtype = Path(directory), dtype or model.dtype
    config = config_from_shape(
        model.shape, dtype=str(dtype).removeprefix("torch."), special=special, unused=model.unused
    )
    if world.rank == 0:
        directory.mkdir(parents=True, exist_ok=True)
        if old := [file.name for file in directory.glob("*.safetensors*")]:
            # A stale model.safetensors would win over the new shards in every loader.
            raise ValueError(
                f"{directory} already holds weights ({list_names(old)}); save into an empty folder"
            )
        write_json(config, directory / "config.json")
        write_json(generation_config(special), directory / "generation_config.json")
        for name, code in model.unused.code_for(config).items():
            (directory / name).write_bytes(code)
    world.all_gather(None)  # the folder is there
    save_tensors(model, directory, dtype, max_shard_bytes, world)


def save_tensors(
    model: Decoder, directory: Path, dtype: torch.dtype, max_shard_bytes: int, world: World
) -> None:
    total = sum(num_bytes(part, dtype) for part in weight_parts(model.shape))
    shards = split_shards(model, dtype, min(max_shard_bytes, -(-total // world.size)))
    files = [SINGLE_FILE]
    if len(shards) > 1:
        files = [f"model-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)]
    tensors: dict[str, Tensor] = {}
    for number, (file, parts) in enumerate(zip(files, shards, strict=True), start=1):
        writer = (number - 1) % world.size
        for part in parts:
            rows = whole_rows(model, part, to=writer)
            if rows is not None and writer == world.rank:  # routers' corrections come to all
                saved = part.to_hf(rows).to("cpu", dtype_of(part, dtype), copy=True).contiguous()
                tensors[part.hf_name], mine = saved, directory / file
        if tensors and (number % world.size == 0 or number == len(files)):  # every rank writes its file
            save_file(tensors, mine, metadata={"format": "pt"})
            # safetensors leaves files only their owner can read; give them the mode other files get here.
            shutil.copymode(directory / "config.json", mine)
            tensors = {}
    if len(shards) > 1 and world.rank == 0:
        weight_map = {part.hf_name: file for file, parts in zip(files, shards, strict=True) for part in parts}
        write_json({"metadata": {"total_size": total}, "weight_map": weight_map}, directory / INDEX_FILE)


def split_shards(model: Decoder, dtype: torch.dtype, max_shard_bytes: int) -> list[list[TensorPart]]:
    """Consecutive tensors, as many to a shard as fit; a tensor too big for any has one to itself."""
    shards: list[list[TensorPart]] = [[]]
    free_bytes = max_shard_bytes
    for part in weight_parts(model.shape):
        size = num_bytes(part, dtype)
        if shards[-1] and size > free_bytes:
            shards.append([])
            free_bytes = max_shard_bytes
        shards[-1].append(part)
        free_bytes -= size
    return shards


def whole_rows(model: Decoder, part: TensorPart, *, to: int) -> Tensor | None:
    """On one rank, the rows of our parameter that `part` is, with what low-rank pairs have learned beside them."""
    rows_of = gather_rows(model, part.parameter, to=to)
    return None if rows_of is None else rows_of(part)


def gather_rows(model: Decoder, parameter: str, *, to: int) -> Callable[[TensorPart], Tensor] | None:
    """On one rank, what gives the rows of any part of a parameter, which is gathered once for all of them."""
    owner, _, leaf = parameter.rpartition(".")
    matrix, weight = model.get_submodule(owner), gather_whole(model.get_parameter(parameter), to=to)
    if isinstance(matrix, LowRankLinear) and leaf == "weight":
        a_RK, b_Nr = gather_whole(matrix.A, to=to), gather_whole(matrix.B, to=to)
        if weight is None or a_RK is None or b_Nr is None:
            return None
        return lambda part: matrix.merge(weight, a_RK, b_Nr, part.start, part.sizes[0])
    return None if weight is None else lambda part: weight.narrow(0, part.start, part.sizes[0])


def num_bytes(part: TensorPart, dtype: torch.dtype) -> int:
    return math.prod(part.sizes) * dtype_of(part, dtype).itemsize


def dtype_of(part: TensorPart, dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if part.wide else dtype


def write_json(content: Mapping[str, Any], file: Path) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def list_names(names: Iterable[str]) -> str:
    """list_names(["a", "b", "c", "d", "e"]) -> "a, b, c and 2 more"."""
    names = sorted(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
