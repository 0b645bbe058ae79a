"""What a text consists of: prose, code, maths, or listing (tables and lists). Each kind has limits of its own.

kind_of(rows, {}) -> "code" where most characters stand in fences or in lines that look like code
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from foresail.curate.heuristics.characters import Array
from foresail.curate.heuristics.columns import CHARACTERS, CODE, COLUMNS, ITEM, KIND, MATHS, TABLE

Kind = Literal["prose", "code", "maths", "listing"]
KINDS: tuple[Kind, ...] = ("prose", "code", "maths", "listing")
CODE_SHARE = 0.35
MATHS_SHARE = 0.25
LISTING_SHARE = 0.6
# page types of the step `extract` whose pages are made of short entries
OF_ENTRIES = ("listing", "collection", "product", "service")


def kind_of(rows: Array, metadata: Mapping[str, Any]) -> Kind:
    """By content; where that is prose, the page type that an extraction wrote may say more."""
    sizes = np.bincount(rows[:, KIND], weights=rows[:, CHARACTERS], minlength=COLUMNS)
    total = max(float(sizes.sum()), 1.0)
    if sizes[CODE] >= CODE_SHARE * total:
        return "code"
    if sizes[MATHS] >= MATHS_SHARE * total:
        return "maths"
    if sizes[TABLE] + sizes[ITEM] >= LISTING_SHARE * total:
        return "listing"
    return "listing" if metadata.get("page_type") in OF_ENTRIES else "prose"
