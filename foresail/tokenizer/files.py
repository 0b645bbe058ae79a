"""A tokenizer's files in a Hugging Face directory; fields that Foresail does not use are kept on writing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foresail.recipe.shape.hf_files import (
    GenerationConfig,
    Kind,
    TokenizerConfig,
    parse,
    read_json,
    token_text,
)


@dataclass(frozen=True, kw_only=True)
class TokenizerFiles:
    """The files' contents; `definition` is the exact text of tokenizer.json."""

    definition: str
    config: Mapping[str, Any] = field(default_factory=dict)
    generation: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    model_eos: tuple[int, ...] = ()

    def special_token(self, name: str) -> str | None:
        """special_token("eos_token") -> "</s>", whether the config says "</s>" or {"content": "</s>", …}."""
        text: str | None = token_text(self.config.get(name))
        return text


def read_files(directory: Path) -> TokenizerFiles:
    definition_path = directory / "tokenizer.json"
    if not definition_path.is_file():
        raise FileNotFoundError(missing_definition(directory))
    try:
        definition = definition_path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{definition_path} is not UTF-8 text ({error}); fetch it again") from error
    config, typed = read_both(directory / "tokenizer_config.json", TokenizerConfig)
    generation, ids = read_both(directory / "generation_config.json", GenerationConfig)
    _, model_ids = read_both(directory / "config.json", GenerationConfig)
    return TokenizerFiles(
        definition=definition,
        config=config,
        generation=generation,
        chat_template=read_template(directory) or inline_template(typed, directory),
        model_eos=(*ids.eos_token_id, *model_ids.eos_token_id),
    )


def write_files(files: TokenizerFiles, eos_ids: tuple[int, ...], directory: Path) -> None:
    """Write what `read_files` reads, with the template inline and all ids that end a turn in one place."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {**files.config, "chat_template": files.chat_template}
    if files.chat_template is None:
        del config["chat_template"]
    generation = {**files.generation, "eos_token_id": list(eos_ids)}
    (directory / "tokenizer.json").write_text(files.definition, encoding="utf-8", newline="")
    write_json(directory / "tokenizer_config.json", config)
    write_json(directory / "generation_config.json", generation)
    # A stale template beside ours would win over it when the directory is read again.
    (directory / "chat_template.jinja").unlink(missing_ok=True)


def read_template(directory: Path) -> str | None:
    file = directory / "chat_template.jinja"
    try:
        return file.read_text(encoding="utf-8") if file.is_file() else None
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text ({error}); fetch it again") from error


def inline_template(config: TokenizerConfig, directory: Path) -> str | None:
    """One template, or several by name of which `default` is the one for plain chat."""
    by_name = config.chat_template
    if by_name and "default" not in by_name:
        raise ValueError(
            f"{directory / 'tokenizer_config.json'} holds chat templates {sorted(by_name)} but none named "
            "'default'; put the wanted one in chat_template.jinja"
        )
    return by_name.get("default")


def read_both(path: Path, kind: type[Kind]) -> tuple[dict[str, Any], Kind]:
    """A file's whole content, to be written again, and the part we read, typed; a missing file is empty."""
    if not path.is_file():
        return {}, kind()
    content = read_json(path)
    try:
        return content, parse(content, kind)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def missing_definition(directory: Path) -> str:
    if not directory.is_dir():
        return f"tokenizer directory {directory} does not exist"
    if (directory / "tokenizer.model").is_file():
        return (
            f"{directory} has a SentencePiece tokenizer.model but no tokenizer.json; convert it once with "
            "transformers: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    return f"{directory} has no tokenizer.json; point to the directory of a Hugging Face checkpoint"
