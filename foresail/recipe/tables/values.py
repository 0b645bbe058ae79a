"""Types of recipe values with checks of their own: names, texts, weights, bounds."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Strict

from foresail.recipe.shape.projections import check_targets

NUM_LEVELS = 5  # of difficulty, from easy to hard
LONGEST_NAME = 255  # bytes, of a folder


def check_name(name: str) -> str:
    if not name.strip(".") or "/" in name or "\0" in name:
        raise ValueError(
            f"{name!r} is not a folder name; choose one like first-try, and set its place with run.root"
        )
    if len(name.encode(errors="replace")) > LONGEST_NAME:
        raise ValueError(f"it has more than {LONGEST_NAME} bytes, too many for a folder's name; shorten it")
    return name


def check_source_name(name: str) -> str:
    if not name.strip() or "/" in name:
        raise ValueError(f'"{name}" cannot be a name in metrics; use one without a slash, like gsm8k')
    return name


def check_mix(weights: tuple[float, ...]) -> tuple[float, ...]:
    if len(weights) != NUM_LEVELS or min(weights) < 0 or not any(weights):
        raise ValueError(
            f"{list(weights)} are not the weights of levels 1 to {NUM_LEVELS}, none below 0 and some above; "
            "write it like [0.5, 0.3, 0.2, 0, 0]"
        )
    return weights


def check_window(bounds: tuple[float, ...]) -> tuple[float, ...]:
    if len(bounds) != 2 or not 0 <= bounds[0] < bounds[1] <= 1:
        raise ValueError(f"{list(bounds)} are not two pass rates, the lower one first; try [0.05, 0.95]")
    return bounds


def check_ratios(bounds: tuple[float, ...]) -> tuple[float, ...]:
    if len(bounds) != 2 or not 0 <= bounds[0] < bounds[1]:
        raise ValueError(f"{list(bounds)} are not two ratios, the lower one first; try [0.5, 2]")
    return bounds


def one_text(value: Any) -> Any:
    """A single text is a list of one."""
    return (value,) if isinstance(value, str) else value


def check_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    if "" in texts:
        raise ValueError('"" is in every text; remove it')
    return texts


def check_thinking_end(text: str) -> str:
    if "</think>" not in text:
        raise ValueError(f'"{text}" does not close thinking; write </think> into it')
    if "<think>" in text:
        raise ValueError(f'"{text}" opens thinking again, which ends a response there; leave <think> out')
    return text


def check_options(options: tuple[str, ...]) -> tuple[str, ...]:
    read_options(options)
    return options


def read_options(options: tuple[str, ...]) -> dict[str, Any]:
    """read_options(["enable_thinking=false"]) -> {"enable_thinking": False}; values as in TOML, else text."""
    values: dict[str, Any] = {}
    for option in options:
        name, equals, text = (part.strip() for part in option.partition("="))
        if not equals or not name.isidentifier():
            raise ValueError(f'"{option}" is not of the form name=value, like enable_thinking=false')
        try:
            values[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = text
    return values


# TOML has lists only, and a recipe is frozen: hence Strict(False)
Mix = Annotated[tuple[float, ...], Strict(False), AfterValidator(check_mix)]
Window = Annotated[tuple[float, ...], Strict(False), AfterValidator(check_window)]
Ratios = Annotated[tuple[float, ...], Strict(False), AfterValidator(check_ratios)]
Targets = Annotated[tuple[str, ...], Strict(False), AfterValidator(check_targets)]
Texts = Annotated[tuple[str, ...], Strict(False), BeforeValidator(one_text), AfterValidator(check_texts)]
ThinkingEnd = Annotated[str, AfterValidator(check_thinking_end)]
Options = Annotated[tuple[str, ...], Strict(False), AfterValidator(check_options)]
Name = Annotated[str, AfterValidator(check_name)]
SourceName = Annotated[str, AfterValidator(check_source_name)]
TooLong = Literal["error", "drop"]
