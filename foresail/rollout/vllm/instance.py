"""vLLM as an instance: it runs in its own process and gets the trainer's weights, proven by checksums.

A chunk is one request of vLLM: the prompt and all earlier tokens, limited to the chunk's length. vLLM's prefix
cache keeps earlier keys and values while there is room, so the next chunk or turn usually recomputes nothing. No
state is kept between chunks: a request may continue on any instance.

vLLM prefers groups that were launched earlier, since a step ends with its first groups.

It starts with random weights; the trainer's come in buckets (`loader.py`). The trainer's end is a `RemoteInstance`,
whether this runs in a thread of its process or in a Ray actor.

Calls to vLLM run in a thread's event loop, with time limits. An engine that does not answer a regular check between
two steps counts as lost.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

from foresail.engine.engine import NotANumber
from foresail.engine.request import Completion, Parked, Request, check
from foresail.engine.stop_strings import FOUND, StopStrings
from foresail.recipe.shape.hf_config import config_from_shape
from foresail.recipe.shape.model_shape import ModelShape
from foresail.records import Finish
from foresail.rollout.fleet import to_parked
from foresail.rollout.instance import Capabilities, ChunkOrder, InstanceLost, Report, Work
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec
from foresail.rollout.remote.worker import hidden_main
from foresail.rollout.vllm.engine import (
    EngineSize,
    Speculation,
    Started,
    engine_arguments,
    sampling_options,
    start_vllm,
)
from foresail.rollout.vllm.loader import VllmLoader
from foresail.rollout.vllm.loop_thread import LoopThread

PATIENCE = 600.0  # seconds for vLLM to start, to take weights, or to answer between two steps
CHECK_SECONDS = 1.0  # seconds between two checks of its process during a call
POLL_SECONDS = 0.01  # seconds between two attempts to empty its cache


@dataclass(eq=False)
class RunningChunk:
    """A chunk that runs in vLLM."""

    dispatch: Dispatch
    future: Future[None] | None = field(default=None)


class VllmInstance:
    """Works by itself; `poll` only collects reports. See `instance.Instance`."""

    works_by_itself = True
    # Parks without keys and values: vLLM's cache has them, or they are computed again.
    capabilities = Capabilities(
        keyed_noise=False, parking=True, drafts=False, memory_lending=False, logprobs=True
    )

    def __init__(
        self,
        name: str,
        shape: ModelShape,
        start: Callable[[], Coroutine[Any, Any, Started]],
        size: EngineSize,
        *,
        vocabulary: Sequence[bytes] = (),
        speculation: Speculation = "none",
        cache_bytes: int = 0,
        patience: float = PATIENCE,
    ) -> None:
        """`vocabulary` is for stop strings. `patience`: seconds for an answer after the start."""
        self.name, self.size = name, size
        self.speculation, self.cache_bytes, self.patience = speculation, cache_bytes, patience
        self.state = InstanceState(
            name=name, kv_tokens=size.kv_tokens, max_running=size.max_running, shares_prompts=True
        )
        self.shape = shape.model_copy(update={"max_context": size.max_length})
        unnamed = (b"",) * (shape.vocab_size - len(vocabulary)) if vocabulary else ()
        self.stop_strings = StopStrings((*vocabulary, *unnamed))
        self.running: dict[str, RunningChunk] = {}
        self.ended: SimpleQueue[tuple[RunningChunk, Completion | BaseException]] = SimpleQueue()
        self.tasks: set[asyncio.Task[Any]] = set()  # running tasks of the loop, also of cancelled chunks
        self.numbers = itertools.count()
        self.version = 0
        self.unresponsive = False  # whether a check got no answer
        self.closed = False
        self.thread = LoopThread(f"vllm {name}")
        with hidden_main():
            try:
                self.started = self.thread.call(start(), PATIENCE)
            except BaseException:
                self.close()
                raise
        self.watch = self.thread.begin(self._watch())

    @property
    def load(self) -> int:
        return len(self.running)

    def submit(self, order: ChunkOrder) -> None:
        self._look()
        dispatch, work = order.dispatch, order.work
        request = work.request if isinstance(work, Parked) else work
        check(request, self.shape, self.size.kv_tokens, 1)
        self.stop_strings.state(request.sampling.stop, ())  # raises an error for unsupported stop strings
        assert request.sampling.thinking_budget is None, "refused by its capabilities"
        running = RunningChunk(dispatch)
        self.running[dispatch.spec.id] = running
        running.future = self.thread.begin(self._run(running, work))

    def cancel(self, request_id: str) -> None:
        running = self.running.pop(request_id, None)
        if running is not None and running.future is not None:
            running.future.cancel()  # the task's end cancels vLLM's request

    def poll(self) -> list[Report]:
        reports = []
        while (ended := self._next_ended()) is not None:
            running, outcome = ended
            if self.running.get(running.dispatch.spec.id) is not running:  # cancelled just as it ended
                continue
            if isinstance(outcome, BaseException):
                self._raise(outcome)
            del self.running[running.dispatch.spec.id]
            reports.append(self._report(running.dispatch, outcome))
        self._look()
        return reports

    def park(self, request_id: str) -> Parked | None:
        """None: requests never rest in vLLM."""
        return None

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None: ...

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        async def all_of_them() -> list[Completion]:
            chunks = (self._sample(one, one.sampling.max_new_tokens, priority=0) for one in requests)
            return await asyncio.gather(*chunks)

        for request in requests:
            check(request, self.shape, self.size.kv_tokens, 1)
            self.stop_strings.state(request.sampling.stop, ())
        answers = self.thread.begin(all_of_them())
        while True:
            try:
                return answers.result(CHECK_SECONDS)
            except TimeoutError:
                self._look()
            except Exception as error:
                self._raise(error)

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def take_figures(self) -> dict[str, float]:
        return {}

    def update_weights(self, version: int) -> None:
        """Empty the prefix cache; `VllmLoader` loads the weights."""
        assert not self.running, "chunks under way belong to the old weights"
        self._within(self._forget_prefixes(), "the prefix cache to be emptied")
        self.version = version

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of vLLM's worker while no request runs."""
        self._within(self._all_left(), "chunks that were cancelled to end")
        return self._within(self._call(method, arguments), "its weights")

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for request_id in list(self.running):
            self.cancel(request_id)
        if hasattr(self, "started"):
            with suppress(Exception):  # it may have ended already
                self.thread.call(self._shut_down(), self.patience)
        self.thread.close()

    # In the event loop.

    async def _run(self, running: RunningChunk, work: Work) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            dispatch = running.dispatch
            outcome: Completion | BaseException = await self._sample(
                work, dispatch.max_tokens, priority=dispatch.spec.group
            )
        except Exception as error:
            outcome = error
        finally:
            self.tasks.discard(task)
        self.ended.put((running, outcome))

    async def _sample(self, work: Work, limit: int, *, priority: int) -> Completion:
        """Up to `limit` more tokens of a request, and how it ended."""
        parked = work if isinstance(work, Parked) else None
        request: Request = work.request if isinstance(work, Parked) else work
        before = tuple(parked.ids) if parked is not None else ()
        limit = min(limit, request.sampling.max_new_tokens - len(before))
        context = [*request.prompt, *before]
        options = sampling_options(request, limit=limit, context=len(context), speculation=self.speculation)
        ids, logprobs, finish = await self._listen(request, context, options, priority)
        if finish == "length" and len(before) + len(ids) < request.sampling.max_new_tokens:
            finish = "chunk"
        return Completion(
            request=request,
            ids=(*before, *ids),
            logprobs=(*(parked.logprobs if parked is not None else ()), *logprobs),
            versions=(*(parked.versions if parked is not None else ()), *[self.version] * len(ids)),
            finish=finish,
        )

    async def _listen(
        self, request: Request, context: list[int], options: dict[str, Any], priority: int
    ) -> tuple[list[int], list[float], Finish]:
        """Collect tokens up to a stop id, the end of a stop string, or the limit."""
        ids: list[int] = []
        logprobs: list[float] = []
        engine, params = self.started.engine, self.started.to_params(options)
        said = context[len(request.prompt) - request.begun :]
        state = self.stop_strings.state(request.sampling.stop, said)
        name = f"{request.id} {next(self.numbers)}"  # a cancelled one may not have ended yet
        stream = engine.generate({"prompt_token_ids": context}, params, name, priority=priority)
        async with aclosing(stream):  # vLLM forgets a request whose stream is closed
            async for output in stream:
                (part,) = output.outputs
                for token, of_token in zip(part.token_ids, part.logprobs or (), strict=True):
                    ids.append(token)
                    logprobs.append(finite(of_token[token].logprob, request))
                    state = int(self.stop_strings.next_KV[state, token]) if state else state
                    if token in request.stop_ids or state == FOUND:
                        return ids, logprobs, "stop"
        if len(ids) < options["max_tokens"]:
            raise RuntimeError(
                f"vLLM ended request {name} after {len(ids)} of {options['max_tokens']} tokens without a stop"
            )
        return ids, logprobs, "length"

    async def _call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        (answer,) = await self.started.engine.collective_rpc(method, args=arguments)
        return answer

    async def _all_left(self) -> None:
        while self.tasks:
            await asyncio.wait(set(self.tasks))

    async def _forget_prefixes(self) -> None:
        """Empty the prefix cache; vLLM refuses while a cancelled request still holds pages."""
        while not await self.started.engine.reset_prefix_cache():
            await asyncio.sleep(POLL_SECONDS)

    async def _watch(self) -> None:
        """Call a cheap method regularly; vLLM answers it between two steps."""
        while True:
            await asyncio.sleep(self.patience / 10)
            try:
                await asyncio.wait_for(self.started.engine.is_sleeping(), self.patience)
            except Exception:
                self.unresponsive = True
                return

    async def _shut_down(self) -> None:
        self.started.engine.shutdown()

    # Checks of its process.

    def _next_ended(self) -> tuple[RunningChunk, Completion | BaseException] | None:
        try:
            return self.ended.get_nowait()
        except Empty:
            return None

    def _look(self) -> None:
        if self.unresponsive or self.started.engine.errored:
            why = "it does not answer" if self.unresponsive else "its process ended"
            raise InstanceLost(self.name, why)

    def _raise(self, error: BaseException) -> NoReturn:
        """Raise InstanceLost if vLLM has ended, else its own error."""
        if self.started.engine.errored:
            raise InstanceLost(self.name) from error
        raise error

    def _within(self, work: Coroutine[Any, Any, Any], waits_for: str) -> Any:
        try:
            return self.thread.call(work, self.patience)
        except TimeoutError as late:
            why = f"it was waited {self.patience:g} seconds for {waits_for}"
            raise InstanceLost(self.name, why) from late
        except Exception as error:
            self._raise(error)

    def _report(self, dispatch: Dispatch, completion: Completion) -> Report:
        generated = len(completion.request.prompt) - dispatch.spec.prompt_tokens + len(completion.ids)
        finished = completion.finish != "chunk"
        event = ChunkEnded(
            spec=dispatch.spec,
            instance=self.name,
            generated=dispatch.generated,
            new_tokens=generated - dispatch.generated,
            finished=finished,
        )
        if finished:
            return Report(event=event, completion=completion, state="finished")
        return Report(event=event, completion=completion, state="parked", parked=to_parked(completion))


def finite(logprob: float, request: Request) -> float:
    if not math.isfinite(logprob):
        raise NotANumber(
            f"vLLM gave the log-probability {logprob} for a token of request {request.id}: the weights are "
            "damaged, or they overflow in this dtype; load another checkpoint, or set model.dtype"
        )
    return logprob


@dataclass(frozen=True, kw_only=True)
class VllmSpec:
    """Builds a `VllmInstance`; see `engine_loop.Spec`."""

    name: str
    shape: ModelShape
    dtype: str
    value_bytes: int
    size: EngineSize
    device: str
    vocabulary: Sequence[bytes]
    speculation: Speculation
    log: Path | None = None  # output of vLLM's processes; None: that of this one

    def build(self) -> tuple[VllmInstance, VllmLoader]:
        with tempfile.TemporaryDirectory(prefix="foresail-") as folder:
            config = config_from_shape(self.shape.within_context(), dtype=self.dtype)
            Path(folder, "config.json").write_text(json.dumps(config))
            arguments = engine_arguments(
                Path(folder),
                self.size,
                self.shape,
                dtype=self.dtype,
                value_bytes=self.value_bytes,
                device=self.device,
                speculation=self.speculation,
            )
            instance = VllmInstance(
                self.name,
                self.shape,
                lambda: start_vllm(arguments, self.log),
                self.size,
                vocabulary=self.vocabulary,
                speculation=self.speculation,
            )
        return instance, VllmLoader(self.name, self.shape, instance.ask)
