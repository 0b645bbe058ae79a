"""The source's settings: `shop-tasks:table=db.json.xz,count=10000,seed=1,languages=en+th,tasks=all,split=test`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

from foresail.data.made.shop.catalogue import TASKS
from foresail.data.made.shop.language import LANGUAGES
from foresail.data.made.shop.plan import SPLITS, Plan
from foresail.data.made.shop.read_table import OPTIONS as TABLE_OPTIONS
from foresail.data.made.shop.read_table import read_table
from foresail.data.made.shop.rows import SOURCE, ShopRows
from foresail.data.made.shop.table import Table

OPTIONS = ("table", "count", "seed", "languages", "tasks", "split", *TABLE_OPTIONS)


def make_rows(options: Mapping[str, str], count: int, seed: int) -> ShopRows:
    """The rows; a ValueError where the table does not give as many."""
    split = options.get("split", "train")
    if split not in SPLITS:
        raise ValueError(f"{SOURCE}: unknown split {split!r}; use one of {', '.join(SPLITS)}")
    table = read_table(
        Path(options["table"]), {name: options[name] for name in TABLE_OPTIONS if name in options}
    )
    plan = Plan(
        table=table,
        seed=seed,
        languages=chosen("languages", options, LANGUAGES),
        tasks=chosen("tasks", options, TASKS),
        split=split,
    )
    check_plan(plan)
    if not 1 <= count <= plan.capacity:
        raise ValueError(
            f"{SOURCE}: count {count} is not between 1 and {plan.capacity}: so many different rows "
            f"{table.name} gives for {split}, evenly by task and language ({plan.smallest()} ends first); lower "
            "count, or leave that task out"
        )
    return ShopRows(plan=plan, length=count)


def chosen(name: str, options: Mapping[str, str], known: Collection[str]) -> tuple[str, ...]:
    """chosen("languages", {"languages": "th+en"}, LANGUAGES) -> ("en", "th"): the order does not matter."""
    text = options.get(name, "all")
    names = list(known) if text == "all" else text.split("+")
    for one in names:
        if one not in known:
            near = get_close_matches(one, known, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
            raise ValueError(f"{SOURCE}: {name}={text} names {one!r}; {hint}")
    return tuple(one for one in known if one in names)


def check_plan(plan: Plan) -> None:
    table, (products, _) = plan.table, SPLITS[plan.split]
    count = sum(product.split == products for product in table.products)
    if not (empty := plan.empty_tasks()):
        return
    missing = missing_columns(plan.table, empty)
    if missing:
        why = f"{table.name} has no {' and no '.join(missing)}; name the columns with {missing[0]}=…"
    else:
        why = (
            f"{count} of {len(table.products)} products of {table.name} are for {products}, which are too few"
        )
    others = [task for task in plan.tasks if task not in empty]
    leave = f"leave them out: tasks={'+'.join(others)}" if others else "give a larger table"
    raise ValueError(f"{SOURCE}: no rows for {', '.join(empty)}: {why}, or {leave}")


def missing_columns(table: Table, tasks: Collection[str]) -> list[str]:
    """Columns without which a task has no form."""
    missing: dict[str, None] = {}
    for task in tasks:
        lacks = [sorted(set(form.needs) - table.columns) for form in TASKS[task]]
        if all(lacks):
            fewest = min(lacks, key=len)
            missing |= dict.fromkeys(fewest)
    return list(missing)
