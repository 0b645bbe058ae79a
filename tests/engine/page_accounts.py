"""Whether an engine's books agree: who owns which page and slot, and where every row stands."""

from __future__ import annotations

from collections import Counter

from foresail.engine.engine import Engine
from foresail.engine.row import NEXT_STATES, NO_SLOT, EngineRow


def check_accounts(engine: Engine) -> None:
    """The pool's counts are the owners that can be seen, and names stand for pages one to one."""
    prefixes, pool = engine.admission.prefixes, engine.pool
    owners = Counter(page for row in engine.rows for page in row.pages)
    being_filled = {*prefixes.by_tokens.values(), *prefixes.unfilled}
    owners.update(page for prefix in being_filled for page in prefix.pages)
    assert pool._owners == [owners[page] for page in range(engine.num_pages)]
    assert sorted([*pool._free, *pool._idle]) == [
        page for page in range(engine.num_pages) if not owners[page]
    ]
    assert {name: page for page, name in pool._names.items()} == pool._named
    assert set(pool._idle) <= set(pool._names) and not set(pool._free) & set(pool._names)
    assert sorted([*engine.slots.empty, *engine.slots]) == list(range(len(engine.table.lengths_S)))
    for prefix in prefixes.by_tokens.values():
        assert prefix.num_rows == sum(row.prefix is prefix for row in engine.rows)
    queued = [row for row in engine.admission.waiting if row.saved is None]
    joined = [row for row in engine.admission.filling if row.prefix is not None]
    assert prefixes.num_queued == Counter(row.prefix_tokens for row in queued + joined)
    for slot, row in engine.slots.items():
        assert engine.table.num_pages_S[slot] == len(row.pages)
        assert engine.table.pages_SP[slot, : len(row.pages)].tolist() == row.pages
    check_states(engine)


def check_states(engine: Engine) -> None:
    """Every row stands where its state says, and nowhere else."""
    by_state: dict[str, list[EngineRow]] = {state: [] for state in NEXT_STATES}
    for row in engine.rows:
        by_state[row.state].append(row)
        assert (row.slot != NO_SLOT) == (row.state in ("running", "resting"))
        assert not row.pages or row.state in ("filling", "running", "resting")
        assert row.prefix is None or row.state == "filling"
        assert row.saved is None or row.state in ("waiting", "parked")
    assert engine.rows.count == {state: len(rows) for state, rows in by_state.items()}
    assert set(engine.admission.waiting) == set(by_state["waiting"])
    assert set(engine.admission.filling) == set(by_state["filling"])
    assert all(row.slot == slot for slot, row in engine.slots.items())
    assert set(engine.slots.values()) == {*by_state["running"], *by_state["resting"]}
