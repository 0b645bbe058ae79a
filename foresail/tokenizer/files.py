"""A tokenizer's files in a Hugging Face directory, read and written without losing what we do not use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TokenizerFiles:
    """What the directory holds: `definition` is the text of tokenizer.json, kept to the byte."""

    definition: str
    config: Mapping[str, Any] = field(default_factory=dict)
    generation: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    model_eos: tuple[int, ...] = ()

    def special_token(self, name: str) -> str | None:
        """special_token("eos_token") -> "</s>", whether the config says "</s>" or {"content": "</s>", …}."""
        token = self.config.get(name)
        return token.get("content") if isinstance(token, dict) else token


def read_files(directory: Path) -> TokenizerFiles:
    definition_path = directory / "tokenizer.json"
    if not definition_path.is_file():
        raise FileNotFoundError(missing_definition(directory))
    try:
        definition = definition_path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{definition_path} is not UTF-8 text ({error}); fetch it again") from error
    config = read_json(directory / "tokenizer_config.json")
    generation = read_json(directory / "generation_config.json")
    model = read_json(directory / "config.json")
    jinja_path = directory / "chat_template.jinja"
    jinja = jinja_path.read_text(encoding="utf-8") if jinja_path.is_file() else None
    return TokenizerFiles(
        definition=definition,
        config=config,
        generation=generation,
        chat_template=jinja or inline_template(config, directory),
        model_eos=(*listed(generation.get("eos_token_id")), *listed(model.get("eos_token_id"))),
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


def inline_template(config: Mapping[str, Any], directory: Path) -> str | None:
    """`chat_template` is a text, or several by name of which `default` is the one for plain chat."""
    template = config.get("chat_template")
    if not isinstance(template, list):
        return template
    by_name = {entry["name"]: entry["template"] for entry in template}
    if "default" not in by_name:
        raise ValueError(
            f"{directory / 'tokenizer_config.json'} holds chat templates {sorted(by_name)} but none named "
            "'default'; put the wanted one in chat_template.jinja"
        )
    return by_name["default"]


def listed(ids: int | list[int] | None) -> list[int]:
    """listed(None) -> []; listed(2) -> [2]; listed([2, 3]) -> [2, 3]."""
    if ids is None:
        return []
    return [ids] if isinstance(ids, int) else list(ids)


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}); fetch it again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not an object; fetch it again")
    return content


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
