"""Math-Verify's side of `math_verifier.py`: pairs in on stdin, verdicts and CPU seconds out on stdout, all JSON.

Runs in the interpreter that has Math-Verify, so nothing here may import foresail. Called as its README says:
parse the gold answer, parse the response, verify; its own time limits stay on unless they are switched off.

    python benchmarks/verifier/mathverify_peer.py < pairs.json
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from importlib import import_module
from typing import Any

peer: Any = import_module("math_verify")  # by name: type checkers run where it is not installed


def main() -> None:
    request = json.load(sys.stdin)
    answer_stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the library prints must not spoil the answer
    logging.disable(logging.CRITICAL)
    for pair in request["warm_up"]:
        verdict(*pair, limited=request["limited"])
    start = cpu_seconds()
    verdicts = [verdict(*pair, limited=request["limited"]) for pair in request["pairs"]]
    json.dump({"verdicts": verdicts, "seconds": cpu_seconds() - start}, answer_stream)
    answer_stream.close()


def verdict(response: str, gold: str, *, limited: bool) -> bool:
    limit = 5 if limited else None
    try:
        read_gold, read_response = (
            peer.parse(text, parsing_timeout=limit) for text in (in_maths(gold), response)
        )
        return bool(peer.verify(read_gold, read_response, timeout_seconds=limit))
    except Exception:  # its time limit can escape; a grader built on it would count that as wrong
        return False


def in_maths(gold: str) -> str:
    """The README asks for LaTeX in an environment."""
    return gold if "$" in gold or "\\boxed" in gold else f"${gold}$"


def cpu_seconds() -> float:
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


if __name__ == "__main__":
    main()
