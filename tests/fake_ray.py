"""As much of Ray as `actors.py` calls, in this process: an actor is an object, a call runs on a thread.

`install(monkeypatch)` puts it in the place of the library, whether that is there or not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class RayActorError(Exception):
    def __init__(self, text: str = "it died", *, actor_init_failed: bool = False) -> None:
        super().__init__(text)
        self.actor_init_failed = actor_init_failed


class FakeRay(ModuleType):
    """`handles` are the actors, by their order; `node` is where the next one is."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.handles: list[Handle] = []
        self.node = "home"
        self.exceptions = SimpleNamespace(RayActorError=RayActorError)
        self.util = SimpleNamespace(get_node_ip_address=lambda: "10.0.0.7")

    def remote(self, **_: Any) -> Callable[[type], Any]:
        def to_class(kind: type) -> Any:
            def start(*arguments: Any) -> Handle:
                self.handles.append(Handle(kind, arguments))
                return self.handles[-1]

            return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start))

        return to_class

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: self.node)

    def kill(self, handle: Handle, *, no_restart: bool) -> None:
        handle.die()


class Handle:
    """An actor with a thread for each group of calls, as Ray has it."""

    def __init__(self, kind: type, arguments: tuple[Any, ...]) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.groups: dict[str, ThreadPoolExecutor] = {}
        self.waiting: list[Future[Any]] = []
        self.lock, self.dead = threading.Lock(), None
        try:
            self.actor = kind(*arguments)
        except Exception as error:
            self.die(RayActorError(f"in its creation task: {error}", actor_init_failed=True))

    def __getattr__(self, name: str) -> Any:
        def options(*, concurrency_group: str) -> Any:
            return SimpleNamespace(remote=lambda *given: self._call(concurrency_group, name, given))

        return SimpleNamespace(options=options)

    def _call(self, group: str, name: str, given: tuple[Any, ...]) -> Any:
        answer: Future[Any] = Future()
        with self.lock:
            self.calls.append((name, given))
            if self.dead is None:
                self.waiting.append(answer)
                pool = self.groups.setdefault(group, ThreadPoolExecutor(1))
                pool.submit(self._run, answer, name, given)
            else:
                answer.set_exception(self.dead)
        return SimpleNamespace(future=lambda: answer)

    def _run(self, answer: Future[Any], name: str, given: tuple[Any, ...]) -> None:
        result = getattr(self.actor, name)(*given)
        with self.lock:
            if not answer.done():
                answer.set_result(result)

    def die(self, error: Exception | None = None) -> None:
        with self.lock:
            self.dead = error or RayActorError()
            for answer in self.waiting:
                if not answer.done():
                    answer.set_exception(self.dead)
            for pool in self.groups.values():
                pool.shutdown(wait=False)
        if hasattr(vars(self).get("actor"), "orders"):  # an engine's thread ends
            self.actor.orders([("close", None)])


def install(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    monkeypatch.setitem(sys.modules, "ray.util", ray.util)
    return ray
