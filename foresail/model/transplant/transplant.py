"""A checkpoint that adopts another tokenizer: new rows of its embeddings, made of the old ones.

    transplant(Path("smollm2"), Path("sea-32k"), Path("smollm2-sea"), method="mean")

Tokens with the same bytes keep their vectors, special ones take those of the old tokens that do the same. The rest
gets vectors by the method: `mean` of the old pieces of its bytes, `omp` by orthogonal matching pursuit among the
shared tokens, `random`. Both embeddings change, input and output; MTP layers share them. What an optimizer has
learned is not carried over: training starts from weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model, load_model, locate_tensors, open_weights, save_model
from foresail.model.transplant.adopted_files import Template, adopt, without_ids
from foresail.model.transplant.auxiliary import EMBEDDING, donor_vectors, text_vectors
from foresail.model.transplant.digits import number_warning
from foresail.model.transplant.token_map import TokenMap, match_tokens
from foresail.model.transplant.vectors import Sums, combine, describe, draw, mean_sums, pursued_sums
from foresail.recipe.shape.hf_config import SpecialIds, read_shape
from foresail.runlog.atomic import replacing_directory
from foresail.tokenizer.files import read_files
from foresail.tokenizer.tokenizer import Tokenizer

Method = Literal["mean", "omp", "random"]
METHODS: tuple[Method, ...] = ("mean", "omp", "random")
SAVED = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Making:
    """How vectors of new tokens are made. `omp` needs `donor`, a checkpoint with the new tokenizer, or `texts`."""

    method: Method = "mean"
    donor: Path | None = None
    texts: Iterable[str] | None = None
    count: int = 64
    width: int = 256  # of the vectors from texts
    seed: int = 0

    def check(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"--method {self.method}: use one of {', '.join(METHODS)}")
        if self.method != "omp" and (self.donor is not None or self.texts is not None):
            raise ValueError(f"--donor and --text are for --method omp; {self.method} has no use for them")
        if self.method == "omp" and (self.donor is None) == (self.texts is None):
            raise ValueError(
                "--method omp needs one of: --donor, a checkpoint with the new tokenizer, and --text, a sample of "
                "the texts that the model shall learn"
            )
        if self.count < 1:
            raise ValueError(f"--atoms {self.count}: a sum has one token or more")


@dataclass(frozen=True, kw_only=True)
class Transplanted:
    """Counts of tokens by what became of them, and what a user should know."""

    rows: int
    counts: Mapping[str, int]
    notes: tuple[str, ...]


def transplant(
    source: Path,
    tokenizer: Path,
    target: Path,
    making: Making,
    *,
    template: Template = "auto",
    pad_to: int = 1,
) -> Transplanted:
    """Write the checkpoint with the new tokenizer to a new folder, its rows of vectors a multiple of `pad_to`."""
    making.check()
    if target.exists():
        raise FileExistsError(f"{target} is already there; remove it, or choose another folder")
    old = Tokenizer.load(source)
    new, notes = adopt(old, read_files(tokenizer), template)
    matched = match_tokens(old, new)
    model = load_model(source, dtype=dtype_in(source), device="cpu", scores=read_shape(source).scores)
    grown = refit(model, matched, new, making, rows=-(-new.vocab_size // pad_to) * pad_to)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_directory(target) as folder:
        new = new.padding_apart() if model.shape.scores else new
        save_model(grown, folder, special=SpecialIds(bos=new.bos_id, eos=new.eos_ids, pad=new.pad_id))
        new.save(folder)
    warning = number_warning(old, new)
    notes += [warning] if warning else []
    return Transplanted(rows=grown.shape.vocab_size, counts=describe(matched), notes=tuple(notes))


def dtype_in(checkpoint: Path) -> torch.dtype:
    """The dtype of its embedding in the file."""
    with open_weights(locate_tensors(checkpoint)[EMBEDDING]) as weights:
        return SAVED[weights.get_slice(EMBEDDING).get_dtype()]


def refit(model: Decoder, matched: TokenMap, new: Tokenizer, making: Making, *, rows: int) -> Decoder:
    """A model with the same layers and new embeddings."""
    shape = model.shape.model_copy(update={"vocab_size": rows})
    grown = empty_model(shape, dtype=model.dtype, device=model.device)
    tables = embeddings(model)
    state = model.state_dict() | {
        name: table.to(model.dtype) for name, table in new_tables(tables, matched, new, making, rows).items()
    }
    grown.load_state_dict(state, strict=True, assign=True)
    grown.unused = replace(model.unused, config=without_ids(model.unused.config))
    return grown


def embeddings(model: Decoder) -> dict[str, Tensor]:
    """Those with a row for every token; the head of a reward model has none."""
    tables = {"embed.weight": model.embed.weight}
    if model.head is not None and not model.shape.scores:
        tables["head.weight"] = model.head.weight
    return tables


def new_tables(
    tables: Mapping[str, Tensor], matched: TokenMap, new: Tokenizer, making: Making, rows: int
) -> dict[str, Tensor]:
    """Each embedding with `rows` rows, in float32."""
    auxiliary, known = auxiliary_vectors(new, making)
    made: dict[str, Tensor] = {}
    sums, pursued = mean_sums(matched), dict[int, Sums]()
    for name, old_VD in tables.items():
        own = sums
        if making.method == "omp":
            vectors_NA = auxiliary[name]  # often one for both embeddings
            if id(vectors_NA) not in pursued:
                pursued[id(vectors_NA)] = pursued_sums(matched, vectors_NA, known, count=making.count)
            own = sums | pursued[id(vectors_NA)]
        made[name] = combine(own, old_VD, rows)
        if making.method == "random":
            ordinary = [number for number in matched.pieces if number not in matched.specials]
            draw(ordinary, old_VD, made[name], seed=making.seed)
    return made


def auxiliary_vectors(new: Tokenizer, making: Making) -> tuple[dict[str, Tensor], Collection[int]]:
    """By the name of the embedding they are for, and the ids that have one."""
    if making.donor is not None:
        return donor_vectors(making.donor, new), range(new.vocab_size)
    if making.texts is not None:
        vectors_NA, known = text_vectors(making.texts, new, width=making.width)
        return {"embed.weight": vectors_NA, "head.weight": vectors_NA}, known
    return {}, ()
