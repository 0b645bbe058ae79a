"""Device memory that can be given back and taken again at the same address.

CUDA graphs hold addresses. So the KV cache keeps its address range, and only the memory behind it is given to the
trainer between two rollouts. PyTorch cannot do that; the driver's virtual memory calls can.

    memory = DeviceMemory(8 << 30, torch.device("cuda"))
    memory.take()
    kv = memory.tensor((2, 28, 1024, 16, 4, 128), torch.bfloat16)
    memory.give_back()  # kv must not be used now
    memory.take()       # kv is valid again, with other content
"""

from __future__ import annotations

import ctypes
import math
import weakref
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint64,
    c_ushort,
    c_void_p,
    pointer,
)
from functools import cache
from typing import Any

import torch
from torch import Tensor

GIB = 1 << 30
# In pieces, so that free memory need not be contiguous.
PIECE_BYTES = GIB

# From the driver's header; the same in CUDA 12 and 13.
OUT_OF_MEMORY = 2
PINNED = 1  # the only type of allocation
ON_DEVICE = 1
READ_AND_WRITE = 3
RECOMMENDED = 1


class Location(Structure):
    """CUmemLocation"""

    _fields_ = (("type", c_int), ("id", c_int))


class AllocationFlags(Structure):
    """The anonymous part of CUmemAllocationProp"""

    _fields_ = (
        ("compression_type", c_ubyte),
        ("gpu_direct_rdma_capable", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    )


class Allocation(Structure):
    """CUmemAllocationProp"""

    _fields_ = (
        ("type", c_int),
        ("requested_handle_types", c_int),
        ("location", Location),
        ("win32_handle_meta_data", c_void_p),
        ("flags", AllocationFlags),
    )


class Access(Structure):
    """CUmemAccessDesc"""

    _fields_ = (("location", Location), ("flags", c_int))


SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuMemGetAllocationGranularity": (POINTER(c_size_t), POINTER(Allocation), c_int),
    "cuMemAddressReserve": (POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemAddressFree": (c_uint64, c_size_t),
    "cuMemCreate": (POINTER(c_uint64), c_size_t, POINTER(Allocation), c_uint64),
    "cuMemMap": (c_uint64, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemSetAccess": (c_uint64, c_size_t, POINTER(Access), c_size_t),
    "cuMemUnmap": (c_uint64, c_size_t),
    "cuMemRelease": (c_uint64,),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}


class DriverError(RuntimeError):
    """A call of the driver failed."""

    def __init__(self, call: str, status: int, words: str) -> None:
        super().__init__(f"{call}: {words} (CUDA error {status})")
        self.status, self.words = status, words


class DeviceMemory:
    """`take` before use, `give_back` to free the memory, `close` to free the addresses too."""

    def __init__(self, num_bytes: int, device: torch.device, driver: Any = None) -> None:
        if num_bytes <= 0:
            raise ValueError(f"cannot reserve {num_bytes} bytes of device memory; ask for at least one")
        self.driver = load_driver() if driver is None else driver
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device, self.num_bytes = torch.device("cuda", index), num_bytes
        torch.cuda.synchronize(self.device)  # creates the context that the driver's calls need
        self.location = Location(ON_DEVICE, index)
        self.allocation = Allocation(PINNED, 0, self.location, None, AllocationFlags())
        granularity, address = c_size_t(), c_uint64()
        self._call(
            "cuMemGetAllocationGranularity", pointer(granularity), pointer(self.allocation), RECOMMENDED
        )
        self.granularity = granularity.value
        self.reserved_bytes = -(-num_bytes // self.granularity) * self.granularity
        self._call("cuMemAddressReserve", pointer(address), self.reserved_bytes, 0, 0, 0)
        self.address = address.value
        self.pieces: list[tuple[int, int]] = []  # address and size of mapped memory
        # Not at exit: the driver then frees everything itself, and may end before us.
        self._finalizer = weakref.finalize(
            self, free_range, self.driver, self.device, self.address, self.reserved_bytes, self.pieces
        )
        self._finalizer.atexit = False

    @property
    def taken(self) -> bool:
        return bool(self.pieces)

    def take(self) -> None:
        """Map memory with undefined content: all of it, or none with an error."""
        assert self._finalizer.alive, "the address range was closed"
        if self.taken:
            return
        torch.cuda.synchronize(self.device)
        try:
            end = self.address + self.reserved_bytes
            largest = max(PIECE_BYTES // self.granularity, 1) * self.granularity
            for start in range(self.address, end, largest):
                self._map_piece(start, min(largest, end - start))
            access = Access(self.location, READ_AND_WRITE)
            self._call("cuMemSetAccess", self.address, self.reserved_bytes, pointer(access), 1)
        except DriverError as error:
            unmap(self.driver, self.pieces)
            if error.status != OUT_OF_MEMORY:
                raise
            free_bytes, _ = torch.cuda.mem_get_info(self.device)
            raise MemoryError(
                f"the KV cache asks for {self.reserved_bytes / GIB:.2f} GiB and {self.device} has "
                f"{free_bytes / GIB:.2f} GiB free; lower engine.kv_tokens, or free memory on the device"
            ) from error

    def give_back(self) -> None:
        """Wait for pending reads, and free the memory; the addresses stay reserved."""
        if self.taken:
            torch.cuda.synchronize(self.device)
            unmap(self.driver, self.pieces)

    def close(self) -> None:
        """Free memory and addresses; otherwise this happens with the last tensor over them."""
        self._finalizer()

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor at the first address. It keeps this object alive, but is valid only while taken."""
        assert self.taken, "take() the memory before making tensors over it"
        num_bytes = math.prod(shape) * dtype.itemsize
        if num_bytes > self.num_bytes:
            raise ValueError(
                f"a {dtype} tensor of shape {list(shape)} takes {num_bytes} bytes, but only {self.num_bytes} "
                "were reserved; reserve more"
            )
        bytes_N = torch.as_tensor(ByteArray(self, num_bytes), device=self.device)
        assert bytes_N.data_ptr() == self.address, "PyTorch made a copy"
        return bytes_N.view(dtype).view(shape)

    def _map_piece(self, address: int, num_bytes: int) -> None:
        handle = self._create(num_bytes)
        try:
            self._call("cuMemMap", address, num_bytes, 0, handle, 0)
            self.pieces.append((address, num_bytes))
        finally:
            # From here on only the mapping holds the memory, so unmapping frees it.
            self._call("cuMemRelease", handle)

    def _create(self, num_bytes: int) -> int:
        handle = c_uint64()
        arguments = (pointer(handle), num_bytes, pointer(self.allocation), 0)
        try:
            self._call("cuMemCreate", *arguments)
        except DriverError as error:
            if error.status != OUT_OF_MEMORY:
                raise
            torch.cuda.empty_cache()  # PyTorch's cached memory may suffice
            self._call("cuMemCreate", *arguments)
        return handle.value

    def _call(self, name: str, *arguments: Any) -> None:
        call(self.driver, name, *arguments)


class ByteArray:
    """The interface by which PyTorch uses foreign memory."""

    def __init__(self, memory: DeviceMemory, num_bytes: int) -> None:
        self.memory = memory  # lives as long as a tensor
        self.__cuda_array_interface__ = {
            "shape": (num_bytes,),
            "typestr": "|u1",
            "data": (memory.address, False),
            "strides": None,
            "version": 3,
        }


@cache
def load_driver() -> Any:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"NVIDIA's driver cannot be loaded ({error}); is it installed?") from error
    for name, arguments in SIGNATURES.items():
        function = getattr(driver, name)
        function.argtypes, function.restype = arguments, c_int
    return driver


def call(driver: Any, name: str, *arguments: Any) -> None:
    status = getattr(driver, name)(*arguments)
    if status:
        words = c_char_p()
        driver.cuGetErrorString(status, pointer(words))
        raise DriverError(name, status, (words.value or b"unknown error").decode())


def unmap(driver: Any, pieces: list[tuple[int, int]]) -> None:
    while pieces:
        call(driver, "cuMemUnmap", *pieces.pop())


def free_range(
    driver: Any, device: torch.device, address: int, num_bytes: int, pieces: list[tuple[int, int]]
) -> None:
    if pieces:
        torch.cuda.synchronize(device)
    unmap(driver, pieces)
    call(driver, "cuMemAddressFree", address, num_bytes)
