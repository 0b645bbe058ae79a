"""Generated problems by source name: `arithmetic:count=2000,seed=1`, `reasoning-gym:chain_sum,size=500,seed=1`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from foresail.data.made import arithmetic, multi_hop, programs, word_problems
from foresail.data.made.passages import problems as passage_qa
from foresail.data.made.passages.library import read_library
from foresail.data.made.passages.ways import WAYS
from foresail.data.made.shop import source as shop
from foresail.records import Message, Problem

FILE_OPTIONS = ("table", "file", "corpus")


def names_generator(source: str) -> bool:
    return source.partition(":")[0] in GENERATORS


def files_of(source: str) -> list[Path]:
    """Files that a generator reads: files_of("shop-tasks:table=products.csv,count=10") -> [products.csv]."""
    settings = (part.strip().partition("=") for part in source.partition(":")[2].split(","))
    return [Path(value) for key, _, value in settings if key in FILE_OPTIONS and value]


def generate(source: str) -> Sequence[Problem]:
    """generate("arithmetic:count=2,seed=1") -> two problems, the same ones every time."""
    name, _, settings = source.partition(":")
    return GENERATORS[name]([part.strip() for part in settings.split(",") if part.strip()])


def generate_arithmetic(settings: list[str]) -> list[Problem]:
    """`arithmetic:count=2000,seed=1,steps=3-5,split=train`; all but count may be left out."""
    options = parse_options("arithmetic", settings)
    check_known("arithmetic option", options, ("count", "seed", "steps", "split"))
    if "count" not in options:
        raise ValueError("arithmetic needs a count: arithmetic:count=2000")
    return arithmetic.make_problems(
        to_int("arithmetic", "count", options["count"]),
        seed=to_int("arithmetic", "seed", options.get("seed", "0")),
        steps=to_range("arithmetic", "steps", options.get("steps", "3-5")),
        split=options.get("split", "train"),
    )


def generate_multi_hop(settings: list[str]) -> list[Problem]:
    """`multi-hop:count=2000,seed=1,hops=2-3,split=train,detours=0,depth=1,noise=0`; all but count may be left out.

    `noise` is of the conversations that are made of them (SFT); the problems are the same.
    """
    source = "multi-hop"
    options = parse_options(source, settings)
    check_known(f"{source} option", options, ("count", "seed", "hops", "split", "detours", "depth", "noise"))
    if "count" not in options:
        raise ValueError(f"{source} needs a count: {source}:count=2000")
    problems = multi_hop.make_problems(
        to_int(source, "count", options["count"]),
        seed=to_int(source, "seed", options.get("seed", "0")),
        hops=to_range(source, "hops", options["hops"]) if "hops" in options else None,
        split=options.get("split", "train"),
        detours=to_int(source, "detours", options.get("detours", "0")),
        depth=to_int(source, "depth", options.get("depth", "1")),
    )
    if "noise" not in options:
        return problems
    if options.get("depth", "1") != "1":
        raise ValueError(f"{source}: noise goes with single detours; remove noise, or depth")
    noise = to_share(source, "noise", options["noise"])
    return [replace(problem, extra={**problem.extra, "noise": noise}) for problem in problems]


def generate_word_problems(settings: list[str]) -> list[Problem]:
    """`word-problems:count=5000,seed=1,split=train`; all but count may be left out."""
    return word_problems.make_problems(**read_counted("word-problems", settings))


def generate_passage_qa(settings: list[str]) -> list[Problem]:
    """`passage-qa:file=qa.jsonl,corpus=corpus.jsonl,count=900,seed=1,ways=noise+rejection,passages=4-8,split=train`"""
    source = passage_qa.SOURCE
    options = parse_options(source, settings)
    check_known(f"{source} option", options, ("file", "corpus", "count", "seed", "ways", "passages", "split"))
    for name in ("file", "count"):
        if name not in options:
            raise ValueError(f"{source} needs {name}: {source}:file=qa.jsonl,corpus=corpus.jsonl,count=900")
    ways = options.get("ways", "+".join(WAYS)).split("+")
    check_known(f"{source} way", ways, WAYS)
    check_known(f"{source} split", [options.get("split", "train")], ("train", "test"))
    files = (options["file"], options.get("corpus"))
    return passage_qa.make_problems(
        read_library(*files),
        to_int(source, "count", options["count"]),
        seed=to_int(source, "seed", options.get("seed", "0")),
        ways=ways,
        passages=to_range(source, "passages", options.get("passages", "4-8")),
        split=options.get("split", "train"),
        files=files,
    )


def generate_programs(settings: list[str]) -> list[Problem]:
    """`programs:count=1000,seed=1,split=train`; all but count may be left out."""
    return programs.make_problems(**read_counted("programs", settings))


def read_counted(source: str, settings: list[str]) -> dict[str, Any]:
    """read_counted("word-problems", ["count=20"]) -> {"count": 20, "seed": 0, "split": "train"}."""
    options = parse_options(source, settings)
    check_known(f"{source} option", options, ("count", "seed", "split"))
    if "count" not in options:
        raise ValueError(f"{source} needs a count: {source}:count=2000")
    numbers = {name: to_int(source, name, options.get(name, "0")) for name in ("count", "seed")}
    return {**numbers, "split": options.get("split", "train")}


def generate_shop_tasks(settings: list[str]) -> Sequence[Problem]:
    """`shop-tasks:table=products.csv,count=10000,seed=1,languages=en+th,tasks=all,split=train`, and columns.

    Rows are made when they are asked for.
    """
    name = "shop-tasks"
    options = parse_options(name, settings)
    check_known(f"{name} option", options, shop.OPTIONS)
    for needed, example in (("table", "products.csv"), ("count", "10000")):
        if needed not in options:
            raise ValueError(
                f"{name} needs a {needed}: {name}:table=products.csv,count=10000, here {needed}={example}"
            )
    count, seed = (to_int(name, key, options.get(key, "0")) for key in ("count", "seed"))
    return shop.make_rows(options, count, seed)


def generate_reasoning_gym(settings: list[str]) -> list[Problem]:
    """`reasoning-gym:chain_sum,size=500,seed=1` and any setting of that dataset's own."""
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise ImportError("reasoning-gym problems need: pip install 'foresail[gym]'") from error
    if not settings or "=" in settings[0]:
        raise ValueError("reasoning-gym needs a dataset's name: reasoning-gym:chain_sum,size=500,seed=1")
    name = settings[0]
    check_known("reasoning-gym dataset", [name], DATASETS)
    texts = {"size": "500", "seed": "0", **parse_options("reasoning-gym", settings[1:])}
    options = {key: to_value(text) for key, text in texts.items()}
    try:
        items = list(reasoning_gym.create_dataset(name, **options))
    except (TypeError, AssertionError, ValueError) as error:
        raise ValueError(f"reasoning-gym refuses {name} with {options}: {error}") from error
    return [gym_problem(item, name, options["seed"], index) for index, item in enumerate(items)]


def gym_problem(item: dict[str, Any], name: str, seed: int, index: int) -> Problem:
    if item["answer"] is None:
        raise ValueError(
            f"reasoning-gym's {name} has problems with many right answers and gives none to compare with; "
            "choose another dataset"
        )
    return Problem(
        id=f"{name}:{seed}:{index}",
        prompt=(Message(role="user", content=item["question"]),),
        answer=str(item["answer"]),
        source=name,
        extra=item["metadata"],
    )


def parse_options(source: str, settings: list[str]) -> dict[str, str]:
    """parse_options("arithmetic", ["count=20", "seed=1"]) -> {"count": "20", "seed": "1"}."""
    for setting in settings:
        if "=" not in setting:
            raise ValueError(f"{source}: {setting!r} is not of the form name=value")
    return dict(setting.split("=", 1) for setting in settings)


def check_known(what: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=3)
            raise ValueError(f"unknown {what} {name!r}; " + suggest(near, known))


def suggest(near: list[str], known: Collection[str]) -> str:
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(sorted(known))}"


def to_int(source: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{source}: {name}={text!r} is not a whole number") from None


def to_range(source: str, name: str, text: str) -> tuple[int, int]:
    """to_range("arithmetic", "steps", "3-5") -> (3, 5); "4" -> (4, 4)."""
    first, _, last = text.partition("-")
    return to_int(source, name, first), to_int(source, name, last or first)


def to_share(source: str, name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{source}: {name}={text!r} is not a number from 0 to 1")
    return share


def to_value(text: str) -> Any:
    """to_value("3") -> 3; to_value("true") -> True; to_value("hard") -> "hard"."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


GENERATORS: dict[str, Callable[[list[str]], Sequence[Problem]]] = {
    "arithmetic": generate_arithmetic,
    "multi-hop": generate_multi_hop,
    "passage-qa": generate_passage_qa,
    "programs": generate_programs,
    "reasoning-gym": generate_reasoning_gym,
    "shop-tasks": generate_shop_tasks,
    "word-problems": generate_word_problems,
}
