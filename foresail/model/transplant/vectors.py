"""The vectors of a new vocabulary, as sums of old ones.

    sums = mean_sums(matched)                       # new id -> ((old id, factor), …)
    sums |= pursued_sums(matched, auxiliary_VD, count=64)
    combine(sums, old_VD, rows)                     # one product of a sparse matrix for every embedding

Copied tokens are sums of one with factor 1, so that their vectors keep every bit.

Legend: V old tokens, N new ones, D width of the model, A width of the auxiliary vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from foresail.model.transplant.pursuit import pursue
from foresail.model.transplant.token_map import TokenMap

Sums = dict[int, tuple[tuple[int, float], ...]]


def mean_sums(matched: TokenMap) -> Sums:
    """Copied tokens as they are, roles and new tokens as the mean of their old ones."""
    made_of = {
        **{number: (old,) for number, old in matched.copied.items()},
        **{number: role.old_ids for number, role in matched.roles.items()},
        **matched.pieces,
    }
    return {number: tuple((old, 1 / len(olds)) for old in olds) for number, olds in made_of.items() if olds}


def pursued_sums(matched: TokenMap, auxiliary_NA: Tensor, known: Collection[int], *, count: int) -> Sums:
    """New tokens by orthogonal matching pursuit among the shared ones, in another embedding of the new tokenizer.

    `known` are the ids whose auxiliary vectors are of use; other tokens get no sum here. So do special ones.
    """
    shared = [n for n in matched.copied if n in known and n not in matched.specials]
    targets = [n for n in matched.pieces if n in known and n not in matched.specials]
    if not shared or not targets:
        return {}
    atoms_MA, targets_NA = auxiliary_NA[shared], auxiliary_NA[targets]
    chosen_NK, factors_NK = (part.cpu() for part in pursue(targets_NA, atoms_MA, count=count))
    old_ids = [matched.copied[number] for number in shared]
    return {
        target: tuple(
            (old_ids[place], factor) for place, factor in zip(places, factors, strict=True) if factor
        )
        for target, places, factors in zip(targets, chosen_NK.tolist(), factors_NK.tolist(), strict=True)
    }


@torch.no_grad()
def combine(sums: Sums, old_VD: Tensor, rows: int) -> Tensor:
    """A row for every id; one without a sum, as of padding, is the mean of all old vectors. In float32."""
    old_VD = old_VD.float()
    new_ND = old_VD.mean(dim=0).repeat(rows, 1)
    entries = [(number, old, factor) for number, parts in sums.items() for old, factor in parts]
    numbers, olds, factors = zip(*entries, strict=True)
    matrix = torch.sparse_coo_tensor(
        torch.tensor([numbers, olds]), torch.tensor(factors), (rows, len(old_VD)), check_invariants=True
    )
    filled = torch.tensor(sorted(sums))
    new_ND[filled] = torch.sparse.mm(matrix.to(old_VD.device), old_VD)[filled]
    return new_ND


@torch.no_grad()
def draw(ids: Collection[int], old_VD: Tensor, new_ND: Tensor, *, seed: int) -> None:
    """Random vectors with the mean and the spread of the old ones, written into `new_ND`; one seed, one result."""
    generator = torch.Generator().manual_seed(seed)
    old_VD = old_VD.float()
    noise = torch.randn(len(ids), old_VD.shape[1], generator=generator).to(old_VD.device)
    new_ND[sorted(ids)] = old_VD.mean(dim=0) + old_VD.std(dim=0) * noise


def describe(matched: TokenMap) -> Mapping[str, int]:
    return {
        "copied": len(matched.copied),
        "roles": len(matched.roles),
        "new": len(matched.pieces),
        "unknown": sum(not pieces for pieces in matched.pieces.values()),
    }
