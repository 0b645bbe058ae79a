"""What steps by a checkpoint share: settings, the open model, and documents as token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.quality.text_windows import windows
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import Outcome
from foresail.recipe.tables.part import CheckedPart

if TYPE_CHECKING:
    from foresail.model.decoder import Decoder
    from foresail.tokenizer.documents import DocumentEncoder
    from foresail.tokenizer.tokenizer import Tokenizer

BatchFunction = Callable[[Sequence[Document]], Sequence[Outcome]]


class ModelStep(CheckedPart):
    """A step by a checkpoint; every process of the pipeline loads it."""

    takes: ClassVar[Holds] = ANY

    model: str = Field(description="folder of the checkpoint")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: CUDA when there is one")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="auto: bfloat16 on CUDA, else float32"
    )
    batch_size: int = Field(64, ge=1, le=65536, description="documents that are read at once")
    batch_tokens: int = Field(16_384, ge=1, description="tokens that are computed at once")
    max_chars: int = Field(20_000, ge=1, description="read of a document, from four places of a longer one")

    @property
    def scores(self) -> bool:
        """Whether the checkpoint must have a score head."""
        return False

    def files(self) -> tuple[str, ...]:
        return (self.model,)

    def preflight(self) -> None:
        from foresail.tokenizer.tokenizer import Tokenizer

        check_head(self)
        Tokenizer.load(self.model)


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenModel:
    model: Decoder
    tokenizer: Tokenizer
    encoder: DocumentEncoder
    context: int

    def encode(self, documents: Sequence[Document], max_chars: int) -> list[list[int] | Drop]:
        """Ids with what begins a document, without its end; a Drop where the tokenizer cannot write the text."""
        texts = [printable(windows(document.text, max_chars)) for document in documents]
        return [
            ids if isinstance(ids, Drop) else [*self.encoder.begin, *ids]
            for ids in encode_each(self.encoder.encode, texts)
        ]


def encode_each(
    encode: Callable[[Sequence[str]], list[list[int]]], texts: Sequence[str]
) -> list[list[int] | Drop]:
    """All at once, or one by one if there is a text with characters that the tokenizer lacks."""
    try:
        return [*encode(texts)]
    except ValueError as error:
        if len(texts) == 1:
            return [Drop("not_encodable", str(error)[:200])]
    return [encode_each(encode, [text])[0] for text in texts]


def printable(text: str) -> str:
    """Lone surrogates, which no tokenizer takes, become question marks."""
    return text.encode("utf-8", "replace").decode()


def check_head(settings: ModelStep) -> None:
    from foresail.recipe.shape.hf_config import read_shape

    shape = read_shape(settings.model)
    if settings.scores and not shape.scores:
        raise ValueError(
            f"{settings.model} is a language model, which gives words and no score; name a reward model, or use "
            "the step perplexity"
        )


def open_model(settings: ModelStep) -> OpenModel:
    from foresail.model.device import choose_device, choose_dtype, choose_library, choose_threads
    from foresail.model.hf import check_vocabulary, load_model
    from foresail.tokenizer.documents import DocumentEncoder
    from foresail.tokenizer.tokenizer import Tokenizer

    check_head(settings)
    scores = settings.scores
    device = choose_device(settings.device)
    dtype = choose_dtype(settings.dtype, device)
    model = load_model(
        settings.model, dtype=dtype, device=device, mtp_layers=None if scores else 0, scores=scores
    )
    tokenizer = Tokenizer.load(settings.model)
    check_vocabulary(model.shape, tokenizer.vocab_size)
    choose_threads(model.shape.num_parameters)
    choose_library(model.dtype)
    return OpenModel(
        model=model.requires_grad_(False),
        tokenizer=tokenizer,
        encoder=DocumentEncoder(tokenizer),
        context=model.shape.max_context,
    )


def below_or_above(value: float, least: float | None, most: float | None, name: str) -> Drop | None:
    if least is not None and value < least:
        return Drop(f"low_{name}", f"{value:.4g}, at least {least:g} is required")
    if most is not None and value > most:
        return Drop(f"high_{name}", f"{value:.4g}, at most {most:g} is allowed")
    return None
