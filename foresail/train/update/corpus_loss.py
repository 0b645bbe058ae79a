"""The loss on corpora that are kept from training, by corpus, while the model learns from others.

Documents come in a fixed random order, as many as the recipe says, and are packed as in the first stage: the same
rows at every measurement, whatever stage the run is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import torch

from foresail.data.corpus.batches import fitting_rows, row_batches
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.windows import PackedRow, Windows
from foresail.recipe.stages.pretrain import Pretrain
from foresail.train.trainer import Trainer
from foresail.train.update.step import token_logprobs

ORDER = 0  # of all runs, so that their losses can be compared


def plan_held_out(recipe: Pretrain, corpora: Mapping[str, Corpus]) -> dict[str, list[PackedRow]]:
    """Rows of each held-out corpus: some of a window, up to the recipe's number of tokens; one at the least."""
    found = {}
    for settings in recipe.held_out:
        windows = Windows(
            settings.label, corpora[settings.source], length=recipe.stages[0].length, seed=ORDER
        )
        rows: list[PackedRow] = []
        start, total = 0, 0
        while start < windows.corpus.num_documents and total < settings.tokens:
            window = windows.at(start)
            sizes = accumulate((row.num_tokens for row in window.rows), initial=total)
            fitting = [
                row for row, before in zip(window.rows, sizes, strict=False) if before < settings.tokens
            ]
            rows += fitting
            total += sum(row.num_tokens for row in fitting)
            start = window.stop
        found[settings.label] = rows
    return found


@torch.no_grad()
def held_out_loss(trainer: Trainer[Pretrain], rows: Mapping[str, Sequence[PackedRow]]) -> dict[str, float]:
    """{"val/loss/web": 2.31}: the mean of all tokens that are predicted; ranks compute a share each."""
    recipe, data = trainer.recipe, trainer.world.data
    corpora = {settings.label: trainer.corpora[settings.source] for settings in recipe.held_out}
    found = {}
    for name, of_corpus in rows.items():
        total, count = torch.zeros((), dtype=torch.float64, device=trainer.device), 0
        for batch in row_batches(
            of_corpus,
            corpora,
            trainer.world,
            weight=1.0,
            attention=recipe.attention,
            rows_at_once=fitting_rows(recipe.micro_batch_tokens, recipe.stages[0].length, trainer.world),
            device=trainer.device,
        ):
            logprobs_M, _ = token_logprobs(trainer.policy.model, batch)
            total -= logprobs_M.double().sum()
            count += len(logprobs_M)
        found[f"val/loss/{name}"] = float(data.sum(total)) / max(1, data.sum(count))
    return found
