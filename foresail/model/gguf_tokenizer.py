"""The tokenizer inside a GGUF file, written as tokenizer.json and tokenizer_config.json.

Byte-level BPE only (GGUF calls it "gpt2"). How text is cut before the merges is not stored in the file
but named in it; CUTS holds the names we know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from foresail.recipe.shape.hf_config import SpecialIds

# Values of tokenizer.ggml.token_type.
CONTROL, USER_DEFINED, UNUSED = 3, 4, 5

WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
MARKS_AND_SPACES = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def cut_like_gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def cut_like_smollm() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), cut_like_gpt2()])


def cut_like_llama3() -> pre_tokenizers.PreTokenizer:
    return cut_by_pattern(rf"{WORDS}|\p{{N}}{{1,3}}|{MARKS_AND_SPACES}")


def cut_like_qwen2() -> pre_tokenizers.PreTokenizer:
    return cut_by_pattern(rf"{WORDS}|\p{{N}}|{MARKS_AND_SPACES}")


def cut_by_pattern(pattern: str) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


CUTS = {
    "gpt-2": cut_like_gpt2,
    "smollm": cut_like_smollm,
    "llama-bpe": cut_like_llama3,
    "llama3": cut_like_llama3,
    "llama-v3": cut_like_llama3,
    "qwen2": cut_like_qwen2,
    "deepseek-r1-qwen": cut_like_qwen2,
}


def save_tokenizer(metadata: dict[str, Any], directory: Path, *, max_length: int) -> None:
    tokenizer = build_tokenizer(metadata)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = json.dumps(tokenizer_config(metadata, max_length), indent=2, ensure_ascii=False)
    (directory / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")


def build_tokenizer(metadata: dict[str, Any]) -> Tokenizer:
    """The BPE of the file's tokens and merges, cut as the file names it, special tokens kept whole."""
    if (kind := metadata.get("tokenizer.ggml.model")) != "gpt2":
        raise ValueError(
            f"tokenizer kind {kind!r} (SentencePiece is 'llama') is not supported, only byte-level BPE "
            "('gpt2'); start from the model's Hugging Face directory instead"
        )
    if (cut := metadata.get("tokenizer.ggml.pre")) not in CUTS:
        raise ValueError(
            f"pre-tokenizer {cut!r} is not supported, only {', '.join(CUTS)}; start from the model's "
            "Hugging Face directory instead"
        )
    tokens, types = read_tokens(metadata)
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    looks_up_whole_words = cut_is_llama3(metadata)
    model = models.BPE(
        {token: id for id, token in enumerate(tokens)}, merges, ignore_merges=looks_up_whole_words
    )
    tokenizer = Tokenizer(model)
    if CUTS[cut] is cut_like_qwen2:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = CUTS[cut]()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if adds_bos(metadata):
        bos_id = metadata["tokenizer.ggml.bos_token_id"]
        bos = tokens[bos_id]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[bos, "$A"], pair=[bos, "$A", bos, "$B"], special_tokens=[(bos, bos_id)]
        )
    for token, type in zip(tokens, types, strict=True):
        if type in (CONTROL, USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=type == CONTROL, normalized=False)])
    return tokenizer


def read_tokens(metadata: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Tokens and their types, without the unused ones at the end that only pad the embedding."""
    tokens = list(metadata["tokenizer.ggml.tokens"])
    types = list(metadata["tokenizer.ggml.token_type"])
    while types and types[-1] == UNUSED:
        tokens.pop()
        types.pop()
    return tokens, types


def cut_is_llama3(metadata: dict[str, Any]) -> bool:
    return CUTS[metadata["tokenizer.ggml.pre"]] is cut_like_llama3


def adds_bos(metadata: dict[str, Any]) -> bool:
    """As the file says; where it is silent, Llama 3 begins every text with its bos and others do not."""
    return bool(metadata.get("tokenizer.ggml.add_bos_token", cut_is_llama3(metadata)))


def special_ids(metadata: dict[str, Any]) -> SpecialIds:
    """End of text and end of turn both stop a generation."""
    ends = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot"))
    return SpecialIds(
        bos=metadata.get("tokenizer.ggml.bos_token_id"),
        eos=tuple(dict.fromkeys(id for id in ends if id is not None)),
        pad=metadata.get("tokenizer.ggml.padding_token_id"),
    )


def tokenizer_config(metadata: dict[str, Any], max_length: int) -> dict[str, Any]:
    tokens, _ = read_tokens(metadata)
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
    }
    for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
        if (id := metadata.get(f"tokenizer.ggml.{theirs}_token_id")) is not None:
            config[f"{ours}_token"] = tokens[id]
    if template := metadata.get("tokenizer.chat_template"):
        config["chat_template"] = template
    return config
