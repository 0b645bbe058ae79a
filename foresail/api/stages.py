"""The stages from Python: what `foresail rl RECIPE` does, with the recipe's keys as keywords.

result = foresail.rl(model="checkpoints/smollm2", data=rows, reward=score, steps=100, samples_per_prompt=8)
result = foresail.sft(model=result, data="conversations.jsonl", steps=200)
result = foresail.resume("runs/rl")
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from foresail.api.given import GivenFiles
from foresail.api.keywords import folder_of
from foresail.api.recipe import finish_recipe, load_recipe, plain, read_source
from foresail.api.result import Result
from foresail.api.rewards import Rewards, name_rewards
from foresail.check.inspection import inspect_data
from foresail.ray_cluster import check_cluster
from foresail.recipe.hub import with_local_models
from foresail.recipe.reading.dump import toml_value
from foresail.recipe.reading.limits import explaining_limits
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.reading.run_folder import has_begun
from foresail.recipe.stages.stage import Stage
from foresail.recipe.stages.table import recipe_type, stage_function
from foresail.recipe.tables.cluster import torchrun_place
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.runlog.directory import RunDirectory
from foresail.train.callbacks import Callbacks, calling

LARGEST_FILE = 20_000_000  # bytes: larger files are not opened before a run, only by `foresail check`
Rows = Iterable[Mapping[str, Any]]
Source = str | Path | Rows | Mapping[str, Any]  # a file, rows, or a table of the recipe


def rl(
    model: Any = None,
    data: Source | None = None,
    reward: Rewards | None = None,
    steps: int | None = None,
    *,
    eval: Source | None = None,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """Reinforcement learning with verifiable rewards; other keywords are the keys of docs/recipe-keys.md.

    Several rewards are added up; {"grader": score, "weight": 0.5} gives one of them a weight. Without a `run` of
    its own name, the first free one of runs/rl, runs/rl-2, … is taken. Every stage takes `on_step` and
    `on_evaluation`, functions of a `StepReport`.
    """
    keywords = {"model": model, "data": data, "reward": reward, "steps": steps, "eval": eval, "run": run}
    return train("rl", recipe, without_none(keywords) | settings, tokenizer)


def sft(
    model: Any = None,
    data: Source | None = None,
    steps: int | None = None,
    *,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """Supervised fine-tuning on conversations; see `rl` for what each keyword takes."""
    keywords = {"model": model, "data": data, "steps": steps, "run": run}
    return train("sft", recipe, without_none(keywords) | settings, tokenizer)


def reward_model(
    model: Any = None,
    data: Source | None = None,
    steps: int | None = None,
    *,
    eval: Source | None = None,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """A reward model from preference pairs, rows with prompt, chosen and rejected; see `rl` for the keywords."""
    keywords = {"model": model, "data": data, "steps": steps, "eval": eval, "run": run}
    return train("reward-model", recipe, without_none(keywords) | settings, tokenizer)


def dpo(
    model: Any = None,
    data: Source | None = None,
    steps: int | None = None,
    *,
    eval: Source | None = None,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """Preference optimisation on pairs, rows with prompt, chosen and rejected; see `rl` for the keywords."""
    keywords = {"model": model, "data": data, "steps": steps, "eval": eval, "run": run}
    return train("dpo", recipe, without_none(keywords) | settings, tokenizer)


def kto(
    model: Any = None,
    data: Source | None = None,
    steps: int | None = None,
    *,
    eval: Source | None = None,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """Preference optimisation on judged answers, rows with prompt, completion and label; see `rl` for keywords."""
    keywords = {"model": model, "data": data, "steps": steps, "eval": eval, "run": run}
    return train("kto", recipe, without_none(keywords) | settings, tokenizer)


def online_dpo(
    model: Any = None,
    data: Source | None = None,
    reward: Rewards | None = None,
    steps: int | None = None,
    *,
    eval: Source | None = None,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """Preference optimisation on pairs of the model's own samples; see `rl` for the keywords."""
    keywords = {"model": model, "data": data, "reward": reward, "steps": steps, "eval": eval, "run": run}
    return train("online-dpo", recipe, without_none(keywords) | settings, tokenizer)


def distill(
    model: Any = None,
    teacher: str | Path | Mapping[str, Any] | None = None,
    data: Source | None = None,
    steps: int | None = None,
    *,
    reward: Rewards | None = None,
    eval: Source | None = None,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """On-policy distillation from `teacher`, a checkpoint; see `rl` for the keywords. A reward only measures."""
    teacher_table = {"path": str(teacher)} if isinstance(teacher, str | Path) else teacher
    keywords = {"model": model, "teacher": teacher_table, "data": data, "steps": steps, "reward": reward}
    keywords |= {"eval": eval, "run": run}
    return train("distill", recipe, without_none(keywords) | settings, tokenizer)


def pretrain(
    model: Any = None,
    stages: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
    *,
    recipe: str | Path | Mapping[str, Any] | Stage | None = None,
    run: str | Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Result:
    """Pretraining on token shards; `stages` are the recipe's tables: {"data": "corpora/web", "tokens": 1e9, …}."""
    listed = [stages] if isinstance(stages, Mapping) else stages
    keywords = {"model": model, "stages": listed, "run": run}
    return train("pretrain", recipe, without_none(keywords) | settings, tokenizer)


def without_none(keywords: dict[str, Any]) -> dict[str, Any]:
    """The named keywords that were set. Only of keys in `settings` does None mean something: it unsets the key."""
    return {key: value for key, value in keywords.items() if value is not None}


def resume(
    run: str | Path | Result,
    *,
    reward: Rewards | None = None,
    changed_reward: bool = False,
    **settings: Any,
) -> Result:
    """Go on with a run that was stopped or killed, exactly as if it had not been; or, with steps=…, longer.

    Pass reward functions of a script again. They are known by their source, and one that has changed is refused,
    unless `changed_reward` accepts it.
    """
    folder = folder_of(run, "run")
    callbacks = take_callbacks(settings)
    recipe = read_run(folder)
    if settings or reward is not None:
        from foresail.train.checkpoints.resume import extend

        again = {} if reward is None else {"reward": name_rewards(reward)}
        recipe = extend(
            RunDirectory.open(folder),
            [*to_overrides(settings)],
            change=lambda recipe: load_recipe(recipe, **again),
            changed_reward=changed_reward,
        )
        recipe = relocate(recipe, folder)
    follow_if_started(recipe)
    options = {"changed_reward": True} if changed_reward else {}
    with calling(callbacks), explaining_limits(recipe):
        stage_function(recipe.stage)(recipe, resume=True, **options)
    return Result(folder)


def to_overrides(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """to_overrides({"steps": 9, "checkpoints": {"keep": None}}) -> "steps=9", "checkpoints.keep=none"."""
    for key, value in settings.items():
        path = prefix + key.replace("__", ".")
        if isinstance(value, Mapping):
            yield from to_overrides(value, f"{path}.")
        else:
            yield f"{path}={'none' if value is None else toml_value(plain(value))}"


def train(stage: str, source: Any, settings: dict[str, Any], tokenizer: Any) -> Result:
    """Make the recipe, write objects into files, check all of it, and run it."""
    table, name = read_source(source)
    if table.setdefault("stage", stage) != stage:
        function = str(table["stage"]).replace("-", "_")
        raise RecipeError(f"{name} is a recipe for {table['stage']}; call foresail.{function}")
    callbacks = take_callbacks(settings)
    settings = {key.replace("__", "."): value for key, value in settings.items()}
    choose_run(table, settings, stage)
    files = GivenFiles(Path(table["run"]["root"]) / table["run"]["name"])
    if "model" in settings or tokenizer is not None:
        settings["model"] = files.add_model(settings.get("model", {}), tokenizer)
    for key in ("data", "eval"):
        if key in settings:
            settings[key] = name_sources(settings[key], key, files)
    if "reward" in settings:
        settings["reward"] = name_rewards(settings["reward"])
    recipe = finish_recipe(table, settings, name)
    files.write()
    with calling(callbacks), explaining_limits(recipe):
        prepare(recipe)()
    return Result(recipe.run.folder)


def take_callbacks(settings: dict[str, Any]) -> Callbacks:
    """`on_step` and `on_evaluation`, which every stage takes, out of the keywords."""
    callbacks = {name: settings.pop(name, None) for name in ("on_step", "on_evaluation")}
    for name, function in callbacks.items():
        if function is not None and not callable(function):
            raise RecipeError(f"{name} is a {type(function).__name__}; give a function of one report")
        if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
            raise RecipeError(f"{name} is a coroutine, which nothing would wait for; give it without async")
    return Callbacks(**callbacks)


def prepare(recipe: Stage) -> Callable[[], Any]:
    """Check all the recipe needs; what is returned runs it. Warnings go to stderr; what cannot run is one error.

        with explaining_limits(recipe):
            outcome = prepare(recipe)()

    A rank that torchrun has started follows the first one, which does all this.
    """
    follow_if_started(recipe)
    recipe = with_local_models(recipe)
    checked, options = check_cluster(preflight(recipe)), dict[str, Any]()
    if not checked.refusals:
        checked, inspection = inspect_data(checked, largest=LARGEST_FILE)
        options = {} if inspection.reader is None else {"reader": inspection.reader}
    for warning in checked.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if checked.refusals:
        raise RecipeError("\n".join(checked.refusals))
    return partial(stage_function(recipe.stage), recipe, **options)


def follow_if_started(recipe: Stage) -> None:
    """A process that torchrun started as another rank than the first follows it here and does not return."""
    place = torchrun_place()
    if place is not None and place.rank > 0:
        from foresail.train.ranks.launch import follow_torchrun

        follow_torchrun(recipe.run)


def choose_run(recipe: dict[str, Any], settings: dict[str, Any], stage: str) -> None:
    """Move the run's root and name from the settings into the recipe; without a name, the first free one."""
    run = settings.pop("run", {})
    if not isinstance(run, str | Mapping):
        raise RecipeError(f'run is a {type(run).__name__}; give a name, or a table like {{"name": "first"}}')
    table = {**recipe.get("run", {}), **({"name": run} if isinstance(run, str) else run)}
    for key in [key for key in settings if key.startswith("run.")]:
        table[key.removeprefix("run.")] = settings.pop(key)
    usual = recipe_type(stage).model_fields["run"].default
    table.setdefault("root", usual.root)
    if "name" not in table:
        number, table["name"] = 1, usual.name
        while has_begun(Path(table["root"]) / table["name"]):
            number += 1
            table["name"] = f"{usual.name}-{number}"
    recipe["run"] = plain(table)


def name_sources(data: Any, key: str, files: GivenFiles) -> Any:
    """The recipe's [data]: rows become the name of the file they will be in, also as a table's `source`."""
    if isinstance(data, Mapping):
        return name_source(data, key, files)
    if isinstance(data, list) and data and all(map(is_table, data)):
        return [name_source(table, f"{key}-{number}", files) for number, table in enumerate(data, start=1)]
    return {"source": data if isinstance(data, str | Path) else files.add_rows(data, key)}


def name_source(table: Mapping[str, Any], key: str, files: GivenFiles) -> dict[str, Any]:
    source = table.get("source")
    if source is None or isinstance(source, str | Path):
        return dict(table)
    return {**table, "source": files.add_rows(source, key)}


def is_table(data: Any) -> bool:
    """Whether it is a table of the recipe, like {"source": …, "suffix": …}, rather than a row of problems."""
    tables = (HeldOut, ProblemSource, Conversations)
    table_keys = {name for table in tables for name in table.model_fields}
    rows_in_it = isinstance(data, Mapping) and not isinstance(data.get("source", ""), str | Path)
    return isinstance(data, Mapping) and "source" in data and (rows_in_it or data.keys() <= table_keys)


def read_run(folder: Path) -> Stage:
    """The recipe of a run, with its folder where it lies now."""
    return relocate(load_recipe(RunDirectory.open(folder).recipe_path), folder)


def relocate(recipe: Stage, folder: Path) -> Stage:
    """The recipe of a run that may have been moved to this folder since."""
    place = folder if folder.name.strip(".") else folder.resolve()  # "." and ".." are no names
    where = recipe.run.model_copy(update={"root": str(place.parent), "name": place.name})
    return recipe.model_copy(update={"run": where})
