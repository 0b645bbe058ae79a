"""Python that somebody else wrote, as a tree.

    parse("def f(x): return x").body[0].name -> "f"

What its compiler would warn of, `"\\d"` or `1if x else 2`, is not for the user's terminal.
"""

from __future__ import annotations

import ast
import warnings

FOREIGN = "<foreign>"

# for good rather than around each call: filters are the whole process's, and answers are graded in threads
warnings.filterwarnings("ignore", module=FOREIGN)


def parse(source: str) -> ast.Module:
    """ValueError for anything that is no Python, or too deep for its parser."""
    try:
        return ast.parse(source, FOREIGN)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from error
