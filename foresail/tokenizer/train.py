"""Training a small byte-level BPE, with a chat template of a few tokens.

Digits are always tokens of their own, so that 12345 looks the same wherever it stands. For several languages, large
vocabularies and many texts there is `training/` (`foresail tokenizer train`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.training.chat_tokens import END, ROLES, split_out
from foresail.tokenizer.training.pattern import PLAIN_WORDS, cut_by

UNKNOWN = "<|unknown|>"

# <|user|>2+2<|assistant|>4<|end|>: one token opens a turn, and only the assistant must learn to close it.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
    {{- '<|' + message.role + '|>' + message.content -}}
    {%- if message.role == 'assistant' -%}{{- eos_token -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""


def train_bpe(
    texts: Iterable[str],
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    whole_tokens: Sequence[str] = (),
    alphabet: Literal["bytes", "seen"] = "bytes",
    chat_template: str = CHAT_TEMPLATE,
) -> Tokenizer:
    """train_bpe(texts, vocab_size=8000).encode("in 12") -> the ids of "in", " ", "1", "2".

    `special_tokens` come on top of the template's own and `decode` can skip them; `whole_tokens` (`<think>`)
    are text that is never split. `alphabet="seen"` starts from the bytes of `texts` instead of all 256: right
    for a toy vocabulary, and `encode` raises on a character it cannot write. The same texts in the same
    order give the same tokenizer.
    """
    wholes = list(dict.fromkeys(whole_tokens))
    specials = list(dict.fromkeys([END, *ROLES, *special_tokens]))
    pieces = [*split_out(texts, [*wholes, *specials])]
    if alphabet == "seen":
        specials.append(UNKNOWN)
        first_symbols = sorted({symbol for piece in pieces for symbol in byte_symbols(piece)})
    else:
        first_symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    check_vocab_size(vocab_size, len(specials), len(wholes), len(first_symbols))
    core = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN if alphabet == "seen" else None))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            cut_by(PLAIN_WORDS),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(wholes),
        special_tokens=specials,
        initial_alphabet=first_symbols,
        show_progress=False,
    )
    core.train_from_iterator(pieces, trainer)
    core.add_tokens([tokenizers.AddedToken(token, normalized=False) for token in wholes])
    return Tokenizer(
        TokenizerFiles(
            definition=core.to_str(),
            config={"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END},
            chat_template=chat_template,
        )
    )


def check_vocab_size(vocab_size: int, specials: int, wholes: int, symbols: int) -> None:
    if vocab_size < specials + wholes + symbols:
        raise ValueError(
            f"vocab_size {vocab_size} is too small: {specials} special tokens, {wholes} whole tokens and "
            f"{symbols} bytes need at least {specials + wholes + symbols}; raise it"
            + (' or set alphabet="seen"' if symbols == 256 else "")
        )


def byte_symbols(text: str) -> str:
    """The printable stand-ins of a text's bytes: byte_symbols("a b") -> "aĠb"."""
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return "".join(piece for piece, _ in pieces)
