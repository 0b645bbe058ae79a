"""A request's keys and values to pinned host memory and back, beside the bus's own rate and recomputing them.

`park` copies out at once; `resume` may only put the request in line, so the way back is timed together with the
step that seats it, less a plain step.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from gpu_clock import GB, measure_bus, median_seconds, timed
from gpu_loads import draw_requests, even
from gpu_verify import seat

from foresail.engine.engine import Engine
from foresail.engine.request import Parked, Request

LENGTHS = (512, 1024, 4096)
ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class Parking:
    """Seconds and bytes of one length."""

    tokens: int
    num_bytes: int
    out: float
    back: float
    recompute: float


def measure_parking(engine: Engine, vocab_size: int) -> tuple[list[Parking], tuple[float, float]]:
    """All lengths, and the bus's rate out and back; a few seconds."""
    return [park_length(engine, tokens, vocab_size) for tokens in LENGTHS], measure_bus()


def park_length(engine: Engine, tokens: int, vocab_size: int) -> Parking:
    request = one_request(tokens, vocab_size, number=0, new=100)
    seat(engine, [request])
    plain = median_seconds(engine.step)
    ways = [park_once(engine, request) for _ in range(ROUNDS + 1)][1:]  # the first pins host memory
    engine.cancel(request.id)
    fresh = [one_request(tokens, vocab_size, number=number, new=1) for number in range(1, ROUNDS + 1)]
    recompute = median(timed(finish, engine, request)[1] for request in fresh)
    return Parking(
        tokens=tokens,
        num_bytes=ways[0][0],
        out=median(out for _, out, _ in ways),
        back=median(back for _, _, back in ways) - plain,
        recompute=recompute - plain,
    )


def park_once(engine: Engine, request: Request) -> tuple[int, float, float]:
    """Bytes, seconds out, and seconds back with one step."""
    parked, out = timed(engine.park, request.id)
    assert parked is not None and parked.kv is not None, "the engine parked without keys and values"
    _, back = timed(resume, engine, parked)
    return parked.kv.pages.nbytes, out, back


def resume(engine: Engine, parked: Parked) -> None:
    engine.resume(parked)
    while not engine.slots:
        engine.step()


def finish(engine: Engine, request: Request) -> None:
    list(engine.generate([request]))


def one_request(tokens: int, vocab_size: int, *, number: int, new: int) -> Request:
    load = even(f"park {tokens}", "parking", groups=1, prompt=tokens, new=new)
    return draw_requests(load, vocab_size, number)[0]


def describe(parking: Parking, bus: tuple[float, float]) -> str:
    rates = parking.num_bytes / parking.out, parking.num_bytes / parking.back
    shares = [rate / own for rate, own in zip(rates, bus, strict=True)]
    return (
        f"  {parking.tokens:>5} tokens, {parking.num_bytes / 1e6:.0f} MB: out {rates[0] / GB:.1f} GB/s "
        f"({shares[0]:.0%} of the bus), back {rates[1] / GB:.1f} GB/s ({shares[1]:.0%}); "
        f"{1000 * parking.out:.2f} + {1000 * parking.back:.2f} ms, recomputing {1000 * parking.recompute:.2f} ms"
    )
