"""Bradley–Terry: the probability that one answer is better than another is the sigmoid of their scores' difference.

Legend: P pairs; 2: the chosen, then the rejected answer.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from foresail.records import PackedAnswers


def bradley_terry_loss(
    scores_P2: Tensor, pairs: PackedAnswers, *, margin: float = 1.0, center: float = 0.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """-log sigmoid(chosen - rejected - margin times the data's), a micro-batch's part of the update's loss.

    `center` weighs the square of each pair's sum, which keeps scores about 0: pairs determine only differences of
    scores. Scores of 2 and 1 cost 0.31, of 1 and 2 cost 1.31. Metrics are sums over answers: a pair counts for
    both of its.
    """
    chosen_P, rejected_P = scores_P2.unbind(1)
    lead_P = chosen_P - rejected_P
    loss_P = -F.logsigmoid(lead_P - margin * pairs.margins_P)
    if center > 0:
        loss_P = loss_P + center * (chosen_P + rejected_P).square()
    metrics = {
        "pairs/accuracy": 2 * (lead_P > 0),
        "pairs/lead": 2 * lead_P,
        "pairs/score": scores_P2,
        "pairs/score_square": scores_P2.square(),
    }
    sums = {name: value.detach().sum(dtype=scores_P2.dtype) for name, value in metrics.items()}
    return (pairs.weights_P * loss_P).sum(), sums
