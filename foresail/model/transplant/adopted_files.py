"""The tokenizer's files of a model that adopts a new tokenizer.

The definition is the new one's. A chat template is the new one's or the old one's; special tokens that the old
template writes, and that the new tokenizer lacks, are added behind its last id. Other settings of the model
(temperature, longest text) are those of the old files, ids in them the new ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import tokenizers

from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.tokenizer import Tokenizer, parse_definition

Template = Literal["auto", "new", "old"]
NAMES = ("bos_token", "eos_token", "pad_token")
# Keys of a config whose values are ids, of which the new tokenizer knows nothing.
IDS = re.compile(r".*token_ids?|.*_ids|(begin_)?suppress_tokens|sequence_bias")


def adopt(old: Tokenizer, new: TokenizerFiles, template: Template) -> tuple[Tokenizer, list[str]]:
    """The tokenizer to save, and notes on what was added to it."""
    chosen = choose_template(old, new, template)
    is_old = chosen is not None and chosen != new.chat_template
    config = dict(new.config)
    for name in NAMES if is_old else ("eos_token",):
        if new.special_token(name) is None and (token := old.files.special_token(name)) is not None:
            config[name] = token
    if "model_max_length" in old.files.config:
        config["model_max_length"] = old.files.config["model_max_length"]
    named = [token for name in NAMES if (token := text_of(config.get(name))) is not None]
    by_id = sorted(old.special_tokens(), key=lambda token: old.token_id(token) or 0)
    written = [token for token in by_id if is_old and token in (chosen or "")]
    definition, added = with_specials(new.definition, [*written, *named])
    notes = [f"added to the tokenizer: {', '.join(added)}"] if added else []
    files = TokenizerFiles(
        definition=definition,
        config=config,
        generation=without_ids(old.files.generation),
        chat_template=chosen,
    )
    first = Tokenizer(files)
    generation = {**files.generation, "bos_token_id": first.bos_id, "pad_token_id": first.pad_id}
    return Tokenizer(replace(files, generation=generation)), notes


def choose_template(old: Tokenizer, new: TokenizerFiles, template: Template) -> str | None:
    """auto: the new one's where it has one, else the old one's."""
    mine = old.files.chat_template
    if template == "old" and mine is None:
        raise ValueError("the checkpoint has no chat template; take the new tokenizer's: --chat-template new")
    if template == "new" and new.chat_template is None:
        raise ValueError("the new tokenizer has no chat template; keep the old one: --chat-template old")
    return (
        new.chat_template or mine if template == "auto" else mine if template == "old" else new.chat_template
    )


def text_of(token: Any) -> str | None:
    return token.get("content") if isinstance(token, Mapping) else token


def with_specials(definition: str, tokens: Sequence[str]) -> tuple[str, list[str]]:
    """The definition with these special tokens, and which of them it lacked."""
    core = parse_definition(definition)
    absent = [token for token in dict.fromkeys(tokens) if core.token_to_id(token) is None]
    if not absent:
        return definition, []
    core = tokenizers.Tokenizer.from_str(definition)  # with its own truncation and padding
    core.add_special_tokens([tokenizers.AddedToken(token, normalized=False) for token in absent])
    return core.to_str(), absent


def without_ids(config: Mapping[str, Any]) -> dict[str, Any]:
    """without_ids({"temperature": 0.6, "eos_token_id": 2}) -> {"temperature": 0.6}."""
    return {key: value for key, value in config.items() if not IDS.fullmatch(key)}
