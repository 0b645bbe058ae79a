"""The loss on held-out corpora.

Documents come in a fixed random order and are packed as in the first stage, so every measurement has the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from foresail.data.corpus.batches import fitting_rows, row_batches
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.windows import PackedRow, Windows
from foresail.recipe.stages.pretrain import Pretrain
from foresail.train.trainer import Trainer
from foresail.train.update.held_out import held_out_loss

ORDER = 0  # of all runs, so that their losses can be compared


def plan_held_out(recipe: Pretrain, corpora: Mapping[str, Corpus]) -> dict[str, list[PackedRow]]:
    """The rows of each held-out corpus, up to the recipe's number of tokens, at least one."""
    planned = {}
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
        planned[settings.label] = rows
    return planned


def held_out_losses(trainer: Trainer[Pretrain], rows: Mapping[str, Sequence[PackedRow]]) -> dict[str, float]:
    """{"val/loss/web": 2.31}, on every rank."""
    recipe, losses = trainer.recipe, {}
    corpora = {settings.label: trainer.corpora[settings.source] for settings in recipe.held_out}
    for name, of_corpus in rows.items():
        batches = row_batches(
            of_corpus,
            corpora,
            trainer.world,
            weight=1.0,
            attention=recipe.attention,
            rows_at_once=fitting_rows(recipe.micro_batch_tokens, recipe.stages[0].length, trainer.world),
            device=trainer.device,
        )
        losses[f"val/loss/{name}"] = held_out_loss(trainer, batches)
    return losses
