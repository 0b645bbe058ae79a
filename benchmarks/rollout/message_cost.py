"""CPU time of the host for what it says to engines in other processes, and hears: pickled, as for a worker's pipe.

For a chunk the host reads a report (all that the request has drawn so far), writes the order for the next chunk
(the same again), and writes the text to instances that draft for its siblings. Keys and values are not in it. The
last line is JSON.

    python benchmarks/rollout/message_cost.py
"""

from __future__ import annotations

import json
import pickle
import platform
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

from foresail.engine.request import Completion, Parked, Request
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.instance import ChunkOrder, Report
from foresail.rollout.plan import ChunkEnded, Dispatch, SampleSpec
from foresail.rollout.sibling_text import SiblingText

PROMPT, CHUNK, VOCABULARY = 512, 2048, 150_000
ROUNDS = 50


@dataclass(frozen=True, kw_only=True)
class MessageCost:
    """Microseconds of messages about a request that has drawn so many tokens."""

    tokens: int
    report: float  # to read
    order: float  # to write
    packing: float  # of its text, once
    text: float  # to write, for each instance that is told
    text_as_list: float  # the same if it were not packed

    def per_chunk(self, instances: float) -> float:
        """With so many instances to tell."""
        return self.report + self.order + self.packing + instances * self.text


def main() -> None:
    costs = [measure(tokens) for tokens in (1_000, 5_000, 20_000)]
    print(f"{'tokens':>8}{'report':>10}{'order':>10}{'packing':>10}{'text':>10}{'as list':>10}   us")
    for cost in costs:
        print(
            f"{cost.tokens:8,}{cost.report:10.0f}{cost.order:10.0f}{cost.packing:10.0f}{cost.text:10.1f}"
            f"{cost.text_as_list:10.0f}"
        )
    print(json.dumps({"machine": platform.machine(), "costs": [asdict(cost) for cost in costs]}))


def measure(tokens: int) -> MessageCost:
    report, order, text = messages(tokens)
    read, spec_and_ids = bytes(ForkingPickler.dumps(report)), text[1]
    packed = ("learn", (spec_and_ids[0], SiblingText(spec_and_ids[1])))
    ForkingPickler.dumps(packed)
    return MessageCost(
        tokens=tokens,
        report=microseconds(lambda: pickle.loads(read)),
        order=microseconds(lambda: ForkingPickler.dumps(order)),
        packing=microseconds(lambda: ForkingPickler.dumps(SiblingText(spec_and_ids[1]))),
        text=microseconds(lambda: ForkingPickler.dumps(packed)),
        text_as_list=microseconds(lambda: ForkingPickler.dumps(text)),
    )


def messages(tokens: int) -> tuple[Any, Any, Any]:
    numbers = random.Random(0)
    ids = [numbers.randrange(VOCABULARY) for _ in range(tokens)]
    request = Request(
        id="17.3",
        prompt=tuple(numbers.randrange(VOCABULARY) for _ in range(PROMPT)),
        key=12345,
        sampling=Sampling(max_new_tokens=2 * tokens + CHUNK),
    )
    logprobs, versions = [-numbers.random() for _ in ids], [7] * tokens
    spec = SampleSpec(
        id="17.3", group=17, sample=3, prompt_tokens=PROMPT, max_tokens=request.sampling.max_new_tokens
    )
    drawn: dict[str, Any] = {"request": request, "ids": ids, "logprobs": logprobs, "versions": versions}
    parked = Parked(**drawn, policy_version=7)
    event = ChunkEnded(spec=spec, instance="i1", generated=0, new_tokens=tokens, finished=False)
    report = Report(
        event=event, completion=Completion(**drawn, finish="chunk"), state="parked", parked=parked
    )
    dispatch = Dispatch(spec=spec, instance="i1", generated=tokens, max_tokens=CHUNK)
    return [report], ("submit", ChunkOrder(dispatch=dispatch, work=parked)), ("learn", (spec, ids))


def microseconds(call: Callable[[], object]) -> float:
    """The least of the rounds: the others were disturbed."""
    spent = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return 1e6 * min(spent)


if __name__ == "__main__":
    main()
