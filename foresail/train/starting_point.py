"""Loads a stage's initial model and tokenizer, as its recipe names them."""

from __future__ import annotations

import torch

from foresail.model.decoder import Decoder
from foresail.model.device import choose_dtype
from foresail.model.hf import Arrange, build_model, check_vocabulary, load_model
from foresail.recipe.tables import parts
from foresail.tokenizer.tokenizer import Tokenizer


def load_model_and_tokenizer(
    settings: parts.Model,
    *,
    seed: int,
    device: torch.device,
    max_length: int,
    arrange: Arrange | None = None,
    scores: bool = False,
    day: str = "",
) -> tuple[Decoder, Tokenizer]:
    """The checkpoint at `path`, or fresh weights of `shape`, with a tokenizer that fits; as a reward model where it
    `scores`.
    """
    tokenizer_path = settings.tokenizer or settings.path
    assert tokenizer_path is not None, "the recipe's check asks for a path or a tokenizer"
    tokenizer = Tokenizer.load(
        tokenizer_path, template=settings.chat_template, options=settings.template_arguments(day)
    )
    model = open_model(
        settings, seed=seed, device=device, max_length=max_length, arrange=arrange, scores=scores
    )
    check_vocabulary(model.shape, tokenizer.vocab_size)
    return model, tokenizer


def open_model(
    settings: parts.Model,
    *,
    seed: int,
    device: torch.device,
    max_length: int,
    arrange: Arrange | None = None,
    scores: bool = False,
) -> Decoder:
    """`max_length` is the longest sequence of the run, which a sliding window must cover; see `load_model`."""
    dtype = choose_dtype(settings.dtype, device)
    if settings.path is not None:
        return load_model(
            settings.path,
            dtype=dtype,
            device=device,
            context=max_length,
            arrange=arrange,
            mtp_layers=settings.mtp_layers,
            scores=scores,
        )
    assert settings.shape is not None, "the recipe's check asks for a path or a shape"
    shape = settings.shape.with_score() if scores else settings.shape
    return build_model(shape, seed=seed, dtype=dtype, device=device, arrange=arrange)
