"""Files that are packed and unpack to far more, and archives (WARC, ARC) whose lengths lie.

STREAMS["zeros.jsonl.gz"](2**30) -> 1 MB that unpacks to 1 GB
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from small_files import warc_record

Maker = Callable[[int], bytes]  # from what it unpacks to, in bytes
AT_ONCE = 2**20


def zeros(size: int) -> Iterator[bytes]:
    part = b"0" * AT_ONCE
    for _ in range(size // AT_ONCE or 1):
        yield part


def packed(compressor: Any, size: int, before: bytes = b"") -> bytes:
    parts = [compressor.compress(before), *(compressor.compress(part) for part in zeros(size))]
    return b"".join([*parts, compressor.flush()])


@cache
def gz(size: int, before: bytes = b"") -> bytes:
    return packed(zlib.compressobj(9, wbits=31), size, before)


def arrow(codec: str) -> Maker:
    def make(size: int) -> bytes:
        import pyarrow

        sink = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(sink, codec) as stream:
            for part in zeros(size):
                stream.write(part)
        return bytes(sink.getvalue())

    return make


def xz_of_a_large_dictionary(size: int) -> bytes:
    """Says that its reader needs 1.5 GB, and uses them."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 3 * 2**29}]
    # its encoder would need ten times as much: the byte of the header that names the size is written by hand
    content = bytearray(packed(lzma.LZMACompressor(filters=[{**filters[0], "dict_size": 2**20}]), size))
    assert content[14:16] == b"\x21\x01"
    content[16] = 37  # (2 | 37 & 1) << 37 // 2 + 11
    content[20:24] = struct.pack("<I", zlib.crc32(content[12:20]))
    return bytes(content)


def layers(size: int) -> bytes:
    """gzip in gzip in gzip …"""
    content = gz(size)
    for _ in range(20):
        content = gzip.compress(content, mtime=0)
    return content


def http(headers: bytes, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + headers + b"\r\n" + body
    return record(block, len(block))


def record(block: bytes, length: int | bytes) -> bytes:
    text = length if isinstance(length, bytes) else b"%d" % length
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:9>\r\nWARC-Target-URI: http://bomb/\r\n"
        b"Content-Type: application/http; msgtype=response\r\nContent-Length: " + text + b"\r\n\r\n"
    ) + (block + b"\r\n\r\n")


def between(*middle: bytes) -> bytes:
    """Good records stand before and behind a bomb: they must be read."""
    return warc_record(0) + b"".join(middle) + warc_record(1)


def coded(coding: bytes, pack: Maker, times: int = 1) -> Maker:
    def make(size: int) -> bytes:
        body = pack(size)
        for _ in range(times - 1):
            body = gzip.compress(body, mtime=0)
        return between(http(b"Content-Encoding: " + b", ".join([coding] * times) + b"\r\n", body))

    return make


def chunks_without_end(size: int) -> bytes:
    return between(http(b"Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n" * min(size // 64, 10**6)))


def chunk_of_4_gb(size: int) -> bytes:
    return between(http(b"Transfer-Encoding: chunked\r\n", b"ffffffff\r\n" + b"x" * 1000))


def member_bomb(size: int) -> bytes:
    """A .warc.gz with a record of 1 GB between others."""
    begin = record(b"HTTP/1.1 200 OK\r\n\r\n", size // AT_ONCE * AT_ONCE + 19).removesuffix(b"\r\n\r\n")
    return b"".join([gzip.compress(warc_record(0)), gz(size, begin), gzip.compress(warc_record(1))])


def headers_without_end(size: int) -> bytes:
    return between(http(b"X: y\r\n" * min(size // 64, 2 * 10**6), b"<p>x"))


def warc_header_without_end(size: int) -> bytes:
    return gzip.compress(warc_record(0)) + gz(size, b"WARC/1.0\r\nWARC-Type: response\r\nX-Long: ")


def wrong_lengths(size: int) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page</p>"
    lengths: list[int | bytes] = [len(block) - 9, len(block) + 30, -1, 0, 10**10, 10**30]
    lengths += [b"", b"many", b"0x10", b"1e3", b"+7"]
    pairs = (warc_record(n) + record(block, length) for n, length in enumerate(lengths))
    return b"".join(pairs) + warc_record(0)


def noise_of_members(size: int) -> bytes:
    """A million times what begins a gzip member."""
    return gzip.compress(warc_record(0)) + b"\x1f\x8b\x08\0" * min(size // 256, 10**6)


def arc_of_wrong_lengths(size: int) -> bytes:
    first = b"1 0 A\nURL IP-address Archive-date Content-type Archive-length\n"
    begin = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain %d\n%b\n" % (len(first), first)
    lines = [
        b"http://a/ 10.0.0.1 20080430204825 text/html %b\n<p>page\n" % n
        for n in (b"3", b"999999999999", b"-1")
    ]
    return begin + b"".join(lines)


STREAMS: dict[str, Maker] = {
    "zeros.jsonl.gz": gz,
    "zeros.jsonl.bz2": lambda size: packed(bz2.BZ2Compressor(), size),
    "zeros.jsonl.xz": lambda size: packed(lzma.LZMACompressor(preset=1), size),
    "zeros.jsonl.zst": arrow("zstd"),
    "zeros.jsonl.lz4": arrow("lz4"),
    "zeros.txt.gz": gz,
    "zeros.html.zst": arrow("zstd"),
    "zeros.unknown.gz": gz,
    "dictionary.txt.xz": xz_of_a_large_dictionary,
    "dictionary.jsonl.xz": xz_of_a_large_dictionary,
    "layers.html.gz": layers,
    "broken.jsonl.gz": lambda size: gz(size)[:-5000] + bytes(5000),
    "gzip.warc": coded(b"gzip", gz),
    "gzip-four-times.warc": coded(b"gzip", gz, 4),
    "deflate.warc": coded(b"deflate", lambda size: packed(zlib.compressobj(9, wbits=-15), size)),
    "brotli.warc": coded(b"br", arrow("brotli")),
    "zstd.warc": coded(b"zstd", arrow("zstd")),
    "chunks.warc": chunks_without_end,
    "chunk.warc": chunk_of_4_gb,
    "headers.warc": headers_without_end,
    "header.warc.gz": warc_header_without_end,
    "member.warc.gz": member_bomb,
    "whole.warc.gz": lambda size: gz(size, between()),
    "lengths.warc": wrong_lengths,
    "noise.warc.gz": noise_of_members,
    "lengths.arc": arc_of_wrong_lengths,
    "line.arc.gz": lambda size: gz(size, b"filedesc://a"),
}
