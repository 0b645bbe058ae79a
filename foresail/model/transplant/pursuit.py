"""Orthogonal matching pursuit: vectors as sums of few others, the next one being what resembles the rest most.

    chosen, factors = pursue(targets_ND, atoms_MD, count=64)
    targets_ND[7]  ≈  (factors[7, :, None] * atoms_MD[chosen[7]]).sum(0)

Legend: N targets, M atoms, D width of both, B targets at once, K atoms of a sum.
"""

from __future__ import annotations

import torch
from torch import Tensor

TARGETS_AT_ONCE = 512
CLOSE = 1e-4  # of a target's length: what is left then is rounding


@torch.no_grad()
def pursue(targets_ND: Tensor, atoms_MD: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Atoms and their factors, `count` for each target; a place that is not needed has factor 0."""
    lengths_M = atoms_MD.norm(dim=1)
    usable_M = lengths_M > 0
    unit_MD = torch.where(usable_M[:, None], atoms_MD / lengths_M.clamp_min(1e-30)[:, None], 0.0)
    count = min(count, int(usable_M.sum()), atoms_MD.shape[1])
    parts = [pursue_some(some, unit_MD, count) for some in targets_ND.split(TARGETS_AT_ONCE)]
    if not parts or not count:
        empty = torch.zeros(len(targets_ND), 0)
        return empty.long(), empty
    chosen_NK, factors_NK = (torch.cat(each) for each in zip(*parts, strict=True))
    return chosen_NK, factors_NK / lengths_M[chosen_NK].clamp_min(1e-30)


def pursue_some(targets_BD: Tensor, unit_MD: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`unit_MD` have length 1 or 0. The chosen ones are kept orthogonal to each other in `basis_BKD`."""
    size, width = targets_BD.shape
    chosen_BK = torch.zeros(size, count, dtype=torch.long, device=targets_BD.device)
    used_BK = torch.zeros(size, count, dtype=torch.bool, device=targets_BD.device)
    basis_BKD = targets_BD.new_zeros(size, count, width)
    rest_BD = targets_BD.clone()
    enough_B = CLOSE * targets_BD.norm(dim=1)
    for step in range(count):
        scores_BM = (rest_BD @ unit_MD.T).abs_()
        scores_BM.scatter_(1, chosen_BK[:, :step], -1.0)  # those that are there
        atom_B = scores_BM.argmax(dim=1)
        new_BD = unit_MD[atom_B]
        for _ in range(2):  # once leaves rounding errors that add up
            inside_BK = torch.einsum("bkd,bd->bk", basis_BKD[:, :step], new_BD)
            new_BD = new_BD - torch.einsum("bkd,bk->bd", basis_BKD[:, :step], inside_BK)
        length_B = new_BD.norm(dim=1)
        useful_B = (rest_BD.norm(dim=1) > enough_B) & (length_B > CLOSE)
        new_BD = torch.where(useful_B[:, None], new_BD / length_B.clamp_min(1e-30)[:, None], 0.0)
        rest_BD = rest_BD - (rest_BD * new_BD).sum(1, keepdim=True) * new_BD
        chosen_BK[:, step], used_BK[:, step], basis_BKD[:, step] = atom_B, useful_B, new_BD
    return chosen_BK, solve(targets_BD, unit_MD[chosen_BK], used_BK)


def solve(targets_BD: Tensor, atoms_BKD: Tensor, used_BK: Tensor) -> Tensor:
    """Least squares over the atoms in use; the others get 0."""
    atoms_BKD = torch.where(used_BK[:, :, None], atoms_BKD, 0.0).double()
    gram_BKK = atoms_BKD @ atoms_BKD.transpose(1, 2)
    gram_BKK = gram_BKK + torch.diag_embed((~used_BK).double() + 1e-9)
    right_BK = torch.einsum("bkd,bd->bk", atoms_BKD, targets_BD.double())
    return torch.linalg.solve(gram_BKK, right_BK).to(targets_BD.dtype)
