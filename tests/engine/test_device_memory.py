"""Memory behind a fixed address: the order of the driver's calls, the undoing of a failure, and the real thing."""

from __future__ import annotations

import ctypes
import gc
from dataclasses import dataclass, field

import pytest
import torch

from foresail.engine import device_memory
from foresail.engine.device_memory import (
    GIB,
    OUT_OF_MEMORY,
    SIGNATURES,
    Access,
    Allocation,
    DeviceMemory,
    DriverError,
)

MIB = 1 << 20
GRANULARITY = 2 * MIB
ADDRESS = 0x7000_0000_0000
DEVICE = torch.device("cuda", 0)
INVALID_VALUE = 1


@dataclass
class StandIn:
    """A driver that keeps accounts: of calls, of reserved and mapped addresses, and of memory still held."""

    free: int = 80 * GIB
    cached: int = 0  # held by PyTorch's allocator until its cache is emptied
    refuse: tuple[str, int] = ("", 0)  # a call, and which time it is refused
    calls: list[str] = field(default_factory=list)
    handles: dict[int, int] = field(default_factory=dict)  # unreleased handle -> bytes
    mapped: dict[int, int] = field(default_factory=dict)  # address -> bytes
    backing: dict[int, int] = field(default_factory=dict)  # address -> handle
    accessible: set[int] = field(default_factory=set)
    reserved: int = 0

    def __getattr__(self, name: str):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def record(*arguments) -> int:
            self.calls.append(name)
            for kind, argument in zip(SIGNATURES[name], arguments, strict=True):
                kind.from_param(argument)  # as ctypes does before a real call
            if self.refuse == (name, self.calls.count(name)):
                return INVALID_VALUE
            return getattr(self, f"do_{name}")(*arguments)

        return record

    def do_cuMemGetAllocationGranularity(self, granularity, allocation, _option) -> int:
        assert (allocation.contents.type, allocation.contents.location.type) == (1, 1)
        granularity.contents.value = GRANULARITY
        return 0

    def do_cuMemAddressReserve(self, address, size, _alignment, _wish, _flags) -> int:
        assert size % GRANULARITY == 0
        self.reserved, address.contents.value = size, ADDRESS
        return 0

    def do_cuMemAddressFree(self, address, size) -> int:
        assert (address, size, self.mapped) == (ADDRESS, self.reserved, {})
        self.reserved = 0
        return 0

    def do_cuMemCreate(self, handle, size, allocation, _flags) -> int:
        assert size % GRANULARITY == 0 and allocation.contents.location.id == DEVICE.index
        if size > self.free:
            return OUT_OF_MEMORY
        self.free -= size
        handle.contents.value = 1000 + len(self.calls)
        self.handles[handle.contents.value] = size
        return 0

    def do_cuMemMap(self, address, size, offset, handle, _flags) -> int:
        assert (self.handles[handle], offset) == (size, 0) and address not in self.mapped
        assert address >= ADDRESS and address + size <= ADDRESS + self.reserved
        self.mapped[address], self.backing[address] = size, handle
        return 0

    def do_cuMemRelease(self, handle) -> int:
        size = self.handles.pop(handle)
        if handle not in self.backing.values():
            self.free += size
        return 0

    def do_cuMemSetAccess(self, address, size, access, count) -> int:
        assert (access.contents.location.id, access.contents.flags, count) == (DEVICE.index, 3, 1)
        assert (address, size) == (ADDRESS, sum(self.mapped.values()))
        self.accessible |= set(self.mapped)
        return 0

    def do_cuMemUnmap(self, address, size) -> int:
        assert self.mapped.pop(address) == size, "a mapping can only be undone as a whole"
        self.accessible.discard(address)
        if self.backing.pop(address) not in self.handles:
            self.free += size
        return 0

    def do_cuGetErrorString(self, status, words) -> int:
        words.contents.value = {1: b"invalid argument", 2: b"out of memory"}[status]
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    driver = StandIn()

    def empty_cache() -> None:
        driver.calls.append("empty_cache")
        driver.free, driver.cached = driver.free + driver.cached, 0

    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: driver.calls.append("synchronize"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (driver.free, 80 * GIB))
    monkeypatch.setattr(torch.cuda, "empty_cache", empty_cache)
    return driver


def test_structures_are_laid_out_as_in_the_header():
    # sizeof and offsetof as a C compiler gives them for cuda.h of CUDA 12.8
    assert ctypes.sizeof(Allocation) == 32
    offsets = [getattr(Allocation, name).offset for name, _ in Allocation._fields_]
    assert offsets == [0, 4, 8, 16, 24]
    assert (ctypes.sizeof(Access), Access.flags.offset) == (12, 8)


def test_only_addresses_are_reserved_at_first(driver):
    memory = DeviceMemory(5 * MIB, DEVICE, driver)
    assert driver.calls == ["synchronize", "cuMemGetAllocationGranularity", "cuMemAddressReserve"]
    assert (driver.reserved, driver.free, memory.taken) == (6 * MIB, 80 * GIB, False)


def test_memory_is_taken_in_pieces_and_all_of_it_is_accessible(driver):
    memory = DeviceMemory(2 * GIB + 3 * MIB, DEVICE, driver)
    driver.calls.clear()
    memory.take()
    piece = ["cuMemCreate", "cuMemMap", "cuMemRelease"]
    assert driver.calls == ["synchronize", *piece, *piece, *piece, "cuMemSetAccess"]
    assert driver.mapped == {ADDRESS: GIB, ADDRESS + GIB: GIB, ADDRESS + 2 * GIB: 4 * MIB}
    assert driver.accessible == set(driver.mapped)
    assert memory.taken and not driver.handles


def test_giving_back_waits_for_the_device_then_frees_and_keeps_the_address(driver):
    memory = DeviceMemory(3 * GIB, DEVICE, driver)
    memory.take()
    driver.calls.clear()
    memory.give_back()
    assert driver.calls == ["synchronize", *["cuMemUnmap"] * 3]
    assert (driver.free, driver.mapped, memory.taken) == (80 * GIB, {}, False)
    memory.take()
    assert memory.address == ADDRESS and sum(driver.mapped.values()) == 3 * GIB


def test_taking_or_giving_back_twice_is_once(driver):
    memory = DeviceMemory(GIB, DEVICE, driver)
    memory.take()
    memory.take()
    assert driver.free == 79 * GIB
    memory.give_back()
    memory.give_back()
    assert driver.calls.count("cuMemUnmap") == 1


def test_what_pytorch_caches_is_asked_for_before_giving_up(driver):
    driver.free, driver.cached = 2 * GIB, 10 * GIB
    memory = DeviceMemory(4 * GIB, DEVICE, driver)
    memory.take()
    assert driver.calls.count("empty_cache") == 1
    assert driver.free == 8 * GIB


def test_too_little_memory_gives_all_back_and_says_what_to_do(driver):
    driver.free = 2 * GIB + GIB // 2
    memory = DeviceMemory(4 * GIB, DEVICE, driver)
    with pytest.raises(MemoryError, match=r"4\.00 GiB.*cuda:0 has 2\.50 GiB free.*lower engine\.kv_tokens"):
        memory.take()
    assert (driver.free, driver.mapped, driver.handles) == (2 * GIB + GIB // 2, {}, {})
    assert not memory.taken
    driver.free = 5 * GIB
    memory.take()
    assert sum(driver.mapped.values()) == 4 * GIB


@pytest.mark.parametrize(("name", "time"), [("cuMemCreate", 2), ("cuMemMap", 3), ("cuMemSetAccess", 1)])
def test_any_other_failure_undoes_what_was_done_and_names_the_call(driver, name, time):
    memory = DeviceMemory(3 * GIB, DEVICE, driver)
    driver.refuse = (name, time)
    with pytest.raises(DriverError, match=rf"{name}: invalid argument \(CUDA error 1\)"):
        memory.take()
    assert (driver.free, driver.mapped, driver.handles) == (80 * GIB, {}, {})
    assert not memory.taken


def test_close_frees_memory_then_addresses_once(driver):
    memory = DeviceMemory(GIB, DEVICE, driver)
    memory.take()
    driver.calls.clear()
    memory.close()
    memory.close()
    assert driver.calls == ["synchronize", "cuMemUnmap", "cuMemAddressFree"]
    assert (driver.free, driver.reserved) == (80 * GIB, 0)
    with pytest.raises(AssertionError):
        memory.take()


def test_what_nobody_holds_is_freed(driver):
    memory = DeviceMemory(GIB, DEVICE, driver)
    memory.take()
    del memory
    gc.collect()
    assert (driver.free, driver.reserved) == (80 * GIB, 0)


def test_a_tensor_needs_memory_and_must_fit(driver):
    memory = DeviceMemory(64, DEVICE, driver)
    with pytest.raises(AssertionError):
        memory.tensor((4,), torch.float32)
    memory.take()
    with pytest.raises(ValueError, match=r"\[33\] takes 66 bytes, but only 64"):
        memory.tensor((33,), torch.bfloat16)
    with pytest.raises(ValueError, match="at least one"):
        DeviceMemory(0, DEVICE, driver)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch):
    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    device_memory.load_driver.cache_clear()
    with pytest.raises(RuntimeError, match=r"libcuda\.so\.1: cannot open"):
        device_memory.load_driver()


# On a card.

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@needs_cuda
def test_cuda_memory_is_lent_to_pytorch_and_taken_back_at_the_same_address():
    torch.cuda.empty_cache()
    free_bytes, _ = torch.cuda.mem_get_info()
    num_bytes = free_bytes * 6 // 10
    memory = DeviceMemory(num_bytes, torch.device("cuda"))
    memory.take()
    whole_N = memory.tensor((num_bytes,), torch.uint8)
    address = whole_N.data_ptr()
    whole_N.fill_(7)
    assert whole_N[:: 16 * MIB].eq(7).all() and whole_N[-1] == 7
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(num_bytes, dtype=torch.uint8, device="cuda")

    memory.give_back()
    lent_N = torch.empty(num_bytes, dtype=torch.uint8, device="cuda")
    with pytest.raises(MemoryError, match=r"lower engine\.kv_tokens"):
        memory.take()
    lent_N.fill_(5)
    assert lent_N[-1] == 5
    del lent_N  # PyTorch keeps it in its cache; take() must get it from there

    memory.take()
    again_N = memory.tensor((num_bytes,), torch.uint8)
    assert again_N.data_ptr() == address
    whole_N.fill_(9)  # the old tensor is the same memory
    assert again_N[:: 16 * MIB].eq(9).all()
    memory.close()
    assert torch.cuda.mem_get_info()[0] >= num_bytes


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_cuda_tensors_have_shape_and_dtype(dtype):
    memory = DeviceMemory(2 * 3 * 5 * 8 * dtype.itemsize, torch.device("cuda"))
    memory.take()
    values = torch.arange(240, device="cuda").remainder(16).view(2, 3, 5, 8).to(dtype)
    tensor = memory.tensor((2, 3, 5, 8), dtype)
    tensor.copy_(values)
    assert tensor.dtype == dtype and tensor.is_contiguous() and tensor.device == values.device
    assert torch.equal(tensor.float(), values.float())
    del memory  # the tensor keeps it
    gc.collect()
    assert torch.equal(tensor.float(), values.float())


@pytest.mark.gpu
@needs_cuda
def test_cuda_graphs_go_on_after_the_memory_was_away():
    memory = DeviceMemory(4096 * 4, torch.device("cuda"))
    memory.take()
    cache_N = memory.tensor((4096,), torch.float32)
    graph = torch.cuda.CUDAGraph()
    sums = torch.zeros((), device="cuda")
    with torch.cuda.graph(graph):
        cache_N.add_(1.0)
        sums.copy_(cache_N.sum())
    memory.give_back()
    memory.take()
    cache_N.fill_(2.0)
    graph.replay()
    assert sums.item() == 3.0 * 4096
