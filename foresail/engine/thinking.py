"""The budget of thinking tokens: what the engine puts into a response that still thinks when its budget is used up.

What is put in, and whether, follows from a row's tokens alone. So a request can be divided, preempted, or go on
elsewhere, and drafts change nothing: they end where the budget does.

Thinking is what stands between <think> and </think>, told by the bytes of tokens; the prompt may have opened it.
Behind the budget an opening tag ends the response, as a stop string does: thinking again would have no bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from foresail.engine.request import Request
from foresail.engine.row import EngineRow
from foresail.engine.stop_strings import FOUND, StopStrings
from foresail.records import Finish

OPEN, CLOSE = b"<think>", b"</think>"
TAIL = 8  # tokens at a prompt's end in which its tag would stand


def closing_due(request: Request, context: Sequence[int], vocabulary: Sequence[bytes]) -> tuple[int, ...]:
    """The ids to put behind `context`, prompt and response so far; () unless it thinks and has reached its budget.

    With a budget of 3 and the closing 7 8: 7 8 behind three tokens, 8 behind these and 7.
    """
    budget = request.sampling.thinking_budget
    if budget is None:
        return ()
    turn = len(request.prompt) - request.begun  # where it begins
    put = len(context) - turn - budget
    if not 0 <= put < len(request.closing):
        return ()
    prompt_end, said = context[max(0, turn - TAIL) : turn], context[turn : turn + budget]
    is_open = thinks(spell(prompt_end, vocabulary), spell(said, vocabulary))
    return request.closing[put:] if is_open else ()


def thinks(prompt_end: bytes, said: bytes) -> bool:
    """Whether thinking is open: thinks(b"…<think>", b"3?") and thinks(b"", b"<think>3?"), not thinks(b"", b"3").

    Before the first token it is, unless the prompt has closed it: the model is about to think.
    """
    prompt_end = prompt_end.rstrip()
    if not said:
        return not prompt_end.endswith(CLOSE)
    closed = said.rfind(CLOSE)
    return said.rfind(OPEN) > closed or (closed < 0 and prompt_end.endswith(OPEN))


def spell(ids: Sequence[int], vocabulary: Sequence[bytes]) -> bytes:
    return b"".join(vocabulary[token] for token in ids)


def stop_state(request: Request, said: Sequence[int], stop_strings: StopStrings) -> int:
    """Where a row stands among the strings that end it: behind the budget an opening tag is one."""
    stop, budget = request.sampling.stop, request.sampling.thinking_budget
    if budget is not None and len(said) >= budget:
        stop = (*stop, OPEN.decode())
    return stop_strings.state(stop, said)


def put_closing(
    row: EngineRow, closing: Sequence[int], version: int, stop_strings: StopStrings
) -> Finish | None:
    """Put these ids into a row without a slot, as far as it has room. How it ends with that; None: it goes on."""
    sampling = row.request.sampling
    for token in closing[: row.limit()]:
        row.put_in([token], version)
        if stop_strings.state(sampling.stop, row.said) == FOUND:
            return "stop"
    if row.limit() > 0:
        return None
    return "length" if len(row.sampled) == sampling.max_new_tokens else "chunk"


def check_closing(request: Request, vocabulary: Sequence[bytes]) -> None:
    """Refuse a budget that could not be held."""
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
