"""The mean of a checkpoint's last hidden states: an embedder for every language that the checkpoint has read.

    CheckpointEmbedder.load("checkpoints/small").embed(["a river", "sungai"])

Texts are packed without padding, so that a text's vector depends on the others of a call by rounding alone.

Legend: T tokens of a batch, S texts in it, D hidden size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foresail.model.embedding.embedder import printable

if TYPE_CHECKING:
    from foresail.model.decoder import Decoder
    from foresail.tokenizer.documents import DocumentEncoder

MAX_TOKENS = 512


class CheckpointEmbedder:
    languages: tuple[str, ...] = ()

    def __init__(
        self, model: Decoder, encoder: DocumentEncoder, *, max_tokens: int, batch_tokens: int
    ) -> None:
        self.model, self.encoder = model, encoder
        self.max_tokens, self.batch_tokens = max_tokens, max(batch_tokens, max_tokens)

    @classmethod
    def load(
        cls,
        folder: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_tokens: int = 0,
        batch_tokens: int = 16_384,
    ) -> CheckpointEmbedder:
        from foresail.model.device import choose_device, choose_dtype, choose_library, choose_threads
        from foresail.model.hf import check_vocabulary, load_model
        from foresail.tokenizer.documents import DocumentEncoder
        from foresail.tokenizer.tokenizer import Tokenizer

        chosen = choose_device(device)
        model = load_model(folder, dtype=choose_dtype(dtype, chosen), device=chosen, mtp_layers=0)
        tokenizer = Tokenizer.load(folder)
        check_vocabulary(model.shape, tokenizer.vocab_size)
        choose_threads(model.shape.num_parameters)
        choose_library(model.dtype)
        return cls(
            model.requires_grad_(False),
            DocumentEncoder(tokenizer),
            max_tokens=min(max_tokens or MAX_TOKENS, model.shape.max_context),
            batch_tokens=batch_tokens,
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        ids = [self.encode(text) for text in texts]
        vectors_ND = np.zeros((len(texts), self.model.shape.hidden_size), np.float32)
        for numbers in self.batches(ids):
            vectors_ND[numbers] = self.means([ids[number] for number in numbers])
        lengths = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
        return vectors_ND / np.where(lengths > 0, lengths, 1)

    def encode(self, text: str) -> list[int]:
        """Empty where the tokenizer cannot write the text, and where there is none."""
        try:
            # a token stands for 64 characters at most in what people write
            ids = self.encoder.encode([printable(text.strip()[: 64 * self.max_tokens])])[0]
        except ValueError:
            return []
        return [*self.encoder.begin, *ids][: self.max_tokens] if ids else []

    def batches(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Numbers of texts, the longest first, as many at once as `batch_tokens` holds."""
        batch: list[int] = []
        size = 0
        for number in sorted(range(len(ids)), key=lambda number: -len(ids[number])):
            if not ids[number]:
                break
            if batch and size + len(ids[number]) > self.batch_tokens:
                yield batch
                batch, size = [], 0
            batch.append(number)
            size += len(ids[number])
        if batch:
            yield batch

    def means(self, ids: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
        import torch

        from foresail.model.attention import PackedAttention
        from foresail.model.readouts import hidden_states

        lengths = [len(own) for own in ids]
        starts_S1 = torch.tensor(np.cumsum([0, *lengths]))
        ids_T = torch.tensor([number for own in ids for number in own])
        positions_T = torch.cat([torch.arange(length) for length in lengths])
        place = self.model.device
        with torch.no_grad():
            hidden_TD = self.model(
                ids_T.to(place), positions_T.to(place), PackedAttention(starts_S1), hidden_states
            ).value
        parts = hidden_TD.float().cpu().split(lengths)
        return torch.stack([part.double().mean(0) for part in parts]).float().numpy()
