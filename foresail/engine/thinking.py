"""The thinking budget: inserts closing tokens into a response that still thinks at its budget.

The insertion depends only on a row's tokens, so chunks, preemption, other instances and drafts change nothing:
drafts end at the budget.

Thinking is the text between <think> and </think>, found by the bytes of tokens; the prompt may have opened it.
After the budget an opening tag ends the response like a stop string: further thinking would have no limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from foresail.engine.request import Request
from foresail.engine.row import EngineRow
from foresail.engine.stop_strings import FOUND, StopStrings
from foresail.records import Finish

OPEN, CLOSE = b"<think>", b"</think>"
TAIL = 8  # tokens at a prompt's end that may hold its tag


def closing_due(request: Request, context: Sequence[int], vocabulary: Sequence[bytes]) -> tuple[int, ...]:
    """The ids to insert after `context`, prompt and response; () unless it thinks and has reached its budget.

    With a budget of 3 and the closing 7 8: 7 8 after three tokens, 8 after these and 7.
    """
    budget = request.sampling.thinking_budget
    if budget is None:
        return ()
    turn = len(request.prompt) - request.begun  # where it begins
    put = len(context) - turn - budget
    if not 0 <= put < len(request.closing):
        return ()
    prompt_end, response = context[max(0, turn - TAIL) : turn], context[turn : turn + budget]
    is_open = thinks(spell(prompt_end, vocabulary), spell(response, vocabulary))
    return request.closing[put:] if is_open else ()


def thinks(prompt_end: bytes, response: bytes) -> bool:
    """Whether thinking is open: thinks(b"…<think>", b"3?") and thinks(b"", b"<think>3?"), not thinks(b"", b"3").

    Before the first token it is open, unless the prompt has closed it.
    """
    prompt_end = prompt_end.rstrip()
    if not response:
        return not prompt_end.endswith(CLOSE)
    closed = response.rfind(CLOSE)
    return response.rfind(OPEN) > closed or (closed < 0 and prompt_end.endswith(OPEN))


def spell(ids: Sequence[int], vocabulary: Sequence[bytes]) -> bytes:
    return b"".join(vocabulary[token] for token in ids)


def stop_state(request: Request, response: Sequence[int], stop_strings: StopStrings) -> int:
    """The state of a row's stop strings; after the budget an opening tag is one."""
    stop, budget = request.sampling.stop, request.sampling.thinking_budget
    if budget is not None and len(response) >= budget:
        stop = (*stop, OPEN.decode())
    return stop_strings.state(stop, response)


def put_closing(
    row: EngineRow, closing: Sequence[int], version: int, stop_strings: StopStrings
) -> Finish | None:
    """Insert these ids into a row without a slot, up to its limit; returns how it ends, or None."""
    sampling = row.request.sampling
    for token in closing[: row.limit()]:
        row.put_in([token], version)
        if stop_strings.state(sampling.stop, row.response) == FOUND:
            return "stop"
    if row.limit() > 0:
        return None
    return "length" if len(row.sampled) == sampling.max_new_tokens else "chunk"


def check_closing(request: Request, vocabulary: Sequence[bytes]) -> None:
    """Refuse an impossible budget."""
    if request.sampling.thinking_budget is None:
        return
    if not vocabulary:
        raise ValueError(
            f"request {request.id} has a thinking budget, and this engine was given no vocabulary, without which "
            "it cannot tell whether thinking is open"
        )
    closing = spell(request.closing, vocabulary)
    if OPEN in closing:
        raise ValueError(f"request {request.id} has a thinking budget, and its closing ids hold a <think>")
    if CLOSE not in closing:
        raise ValueError(f"request {request.id} has a thinking budget, and its closing ids hold no </think>")
    if stops := {*request.closing} & {*request.stop_ids}:
        raise ValueError(f"request {request.id}: its closing ids hold the stop id {min(stops)}; leave it out")
