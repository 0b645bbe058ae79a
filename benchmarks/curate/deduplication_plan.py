"""What `deduplication_growth.py` measured: its exponent, its picture, and what 10 billion documents would take."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from deduplication_growth import MEASURED

from foresail.curate.deduplicate.groups import ROW_BYTES

DOCUMENTS = 10**10
PARTS = ("collect", "decide", "apply")
# machines that are planned with; a disk that all see
COLLECTORS, CORES = 4, 64
MEMORY_GB = 4000  # of the machine that decides
SORTING_GB = 256  # its `memory_gib`
DISK_GB_PER_SECOND = 2.0
# files of `decide` that are as long as the corpus and are read at random, as are the signatures of candidates:
# first, is_candidate, slots, counts, repeated, places
ARRAYS = 8 + 1 + 8 + 8 + 1 + 8
ENTRY = 16  # bytes of a band entry while it is sorted on disk: key and number
SIGNATURE = 128 * 4


def measured() -> list[dict[str, Any]]:
    figures = json.loads(MEASURED.read_text())
    return [figures[size] for size in sorted(figures, key=int)]


def exponent(rows: list[dict[str, Any]], part: str = "") -> float:
    """Of CPU seconds over documents, from the smallest size to the largest."""
    first, last = (seconds(row, part) for row in (rows[0], rows[-1]))
    return math.log(last / first) / math.log(rows[-1]["documents"] / rows[0]["documents"])


def seconds(row: dict[str, Any], part: str = "") -> float:
    return float(sum(row[f"cpu_{name}"] for name in ([part] if part else PARTS)))


def plan() -> dict[str, Any]:
    """From the largest size that was measured."""
    rows = measured()
    last = rows[-1]
    size = last["documents"]
    cost = {part: seconds(last, part) / size * 1e6 for part in PARTS}
    hours = {part: cost[part] * DOCUMENTS / 1e6 / 3600 for part in PARTS}
    bands = last["step"]["bands"]
    share = last["step"]["candidates"] / size
    levels = math.ceil(math.log(max(1.0, DOCUMENTS * ROW_BYTES / (SORTING_GB * 1e9)), 256))
    terabytes = {
        "features": last["features"] / size * DOCUMENTS / 1e12,
        "decisions": last["decisions"] / size * DOCUMENTS / 1e12,
        "arrays": ARRAYS * DOCUMENTS / 1e12,
        "signatures of candidates": share * SIGNATURE * DOCUMENTS / 1e12,
        "one band while it is sorted": ENTRY * DOCUMENTS / 1e12,
        "shuffled, all bands": ENTRY * bands * levels * DOCUMENTS / 1e12,
    }
    # written and read: entries; read: keys, signatures; written and read: signatures of candidates
    passes = (
        2 * terabytes["shuffled, all bands"]
        + terabytes["features"]
        + 2 * terabytes["signatures of candidates"]
    )
    collecting = (hours["collect"] + hours["apply"]) / (COLLECTORS * CORES)
    deciding = hours["decide"] + passes * 1000 / DISK_GB_PER_SECOND / 3600
    held = terabytes["arrays"] + terabytes["signatures of candidates"]
    figures = {
        "measured_at": size,
        "exponent": round(exponent(rows), 3),
        "microseconds": {part: round(value, 1) for part, value in cost.items()},
        "bytes": {
            "features": round(last["features"] / size),
            "signature": SIGNATURE,
            "band keys": 8 * bands,
            "decision": round(last["decisions"] / size),
        },
        "candidates": round(share, 3),
        "cpu_hours": {part: round(value, 1) for part, value in hours.items()},
        "terabytes": {name: round(value, 2) for name, value in terabytes.items()},
        "memory_gb_to_decide": round(held * 1000 + SORTING_GB),
        "fits": held * 1000 + SORTING_GB <= MEMORY_GB,
        "hours_to_collect_and_apply": round(collecting, 1),
        "hours_to_decide": round(deciding, 1),
    }
    for name, value in figures.items():
        print(f"{name:<28}{value}")
    return figures


def draw(picture: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = measured()
    sizes = [row["documents"] for row in rows]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    time, memory = figure.subplots(1, 2)
    for part, label in zip(("", *PARTS), ("all three", *PARTS), strict=True):
        values = [seconds(row, part) for row in rows]
        power = f"{label}: documents^{exponent(rows, part):.2f}"
        time.plot(sizes, values, "o-", label=power, linewidth=2 if not part else 1.2)
    time.set_yscale("log")
    time.set_ylabel("CPU seconds")
    time.set_title("The step minhash, 200 words a document", loc="left", fontsize=11)
    memory.plot(sizes, [row["memory_mib"] for row in rows], "o-", linewidth=2, label="memory, MiB")
    on_disk = [row["disk_peak"] / 2**20 for row in rows]
    memory.plot(sizes, on_disk, "o-", linewidth=1.2, label="files of the step, MiB")
    memory.set_yscale("log")
    memory.set_title("Peak memory and disk", loc="left", fontsize=11)
    for axes in (time, memory):
        axes.set_xscale("log")
        axes.set_xlabel("documents")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(picture, dpi=160)
