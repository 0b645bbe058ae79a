"""HTTP requests with bounded cost: limits on bytes, seconds, and the forms of their length.

`LimitedHandler` reads a head of at most LONGEST_HEAD bytes. A body is read only when the server asks for it, after
it has checked the key; an unread body is discarded.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from email.message import Message
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from foresail.chat.errors import Refusal

LONGEST_HEAD = 1 << 17  # bytes of the request line and all headers
HEAD_SECONDS, BODY_SECONDS = 30.0, 300.0  # from the first byte to the last
LINGER_BYTES, LINGER_SECONDS = 1 << 24, 5.0  # of a refused body, thrown away
PIECE = 1 << 16
LENGTH = re.compile(r"0|[1-9][0-9]{0,11}")
# A header's line. The standard library also takes others, and overlooks what stands behind some of them.
HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*\r?\n")


def parse_length(lengths: Sequence[str], encodings: Sequence[str], longest: int) -> int:
    """parse_length(["12"], [], 100) -> 12, of all headers Content-Length and Transfer-Encoding.

    Only one form of a length is accepted: two programs that read it differently could take a body for a request.
    """
    if encodings or not lengths:
        raise Refusal("a request needs a Content-Length, and no Transfer-Encoding", status=411)
    length = lengths[0].strip(" \t")
    if len(lengths) > 1 or not LENGTH.fullmatch(length):
        shown = ", ".join(lengths)[:40]
        raise Refusal(f"a request has one Content-Length, a plain decimal number, not {shown!r}", status=400)
    if int(length) > longest:
        raise Refusal(f"a request has a Content-Length of at most {longest}", status=413)
    return int(length)


class LimitedInput:
    """A client's bytes as a file. `limit` sets how many more bytes and seconds are allowed."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = bytearray()
        self.lines: list[bytes] = []  # that were read since the last limit
        self.limit(0, 0.0)

    def limit(self, num_bytes: int, seconds: float) -> None:
        self.left, self.deadline = num_bytes, time.monotonic() + seconds
        self.lines.clear()

    def wait(self) -> bool:
        """Whether any byte comes before the time is over."""
        return bool(self.buffer) or self._receive()

    def readline(self, size: int) -> bytes:
        searched = 0
        while (end := self.buffer.find(b"\n", searched, size) + 1) == 0 and len(self.buffer) < size:
            searched = len(self.buffer)
            if not self._receive():
                break
        self.lines.append(self._take(end or min(size, len(self.buffer))))
        return self.lines[-1]

    def read(self, size: int) -> bytes:
        while len(self.buffer) < size and self._receive():
            pass
        return self._take(min(size, len(self.buffer)))

    def discard(self) -> None:
        """Reads and drops bytes until the client's end or the limit."""
        while self.left > 0 and self._receive():
            self.left -= len(self.buffer)
            self.buffer.clear()

    def close(self) -> None:
        self.buffer.clear()

    def _take(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise HTTPException("too many bytes")  # which the standard library answers with status 431
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def _receive(self) -> bool:
        before = self.connection.gettimeout()
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        try:
            piece = self.connection.recv(PIECE)
        finally:
            self.connection.settimeout(before)
        self.buffer += piece
        return bool(piece)


class LimitedHandler(BaseHTTPRequestHandler):
    """A handler whose subclasses call `read_body` before `send`, or do without the body."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout: ClassVar[float]  # seconds that a connection may say nothing
    may_wait = True  # between requests, as long as `timeout`; else HEAD_SECONDS
    is_read = False  # whether the request's body is
    has_refused = False  # a body that the client may still be sending

    def setup(self) -> None:
        super().setup()
        self.rfile: Any = LimitedInput(self.connection)

    def handle_one_request(self) -> None:
        self.is_read, self.expects_word, self.headers = False, False, Message()
        self.rfile.limit(LONGEST_HEAD, self.timeout if self.may_wait else HEAD_SECONDS)
        try:
            is_there = self.rfile.wait()
        except TimeoutError:
            is_there = False
        if not is_there:
            self.close_connection = True
            return
        self.rfile.limit(LONGEST_HEAD, HEAD_SECONDS)
        super().handle_one_request()

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        *headers, end = self.rfile.lines[1:]
        if end not in (b"\r\n", b"\n") or not all(map(HEADER.fullmatch, headers)):
            self.send_error(
                400, "a header is malformed: each is a line of its own, a name, a colon and a value"
            )
            return False
        return True

    def handle_expect_100(self) -> bool:
        self.expects_word = True  # sent when the body is asked for
        return True

    def read_body(self, longest: int) -> bytes:
        """The request's body; refused if its length is missing or too large."""
        length = parse_length(
            self.headers.get_all("Content-Length", []),
            self.headers.get_all("Transfer-Encoding", []),
            longest,
        )
        if self.expects_word:
            super().handle_expect_100()
        self.rfile.limit(length, BODY_SECONDS)
        self.is_read = True
        return self.rfile.read(length)

    def send(self, status: int, kind: str, body: bytes) -> None:
        """Send a reply. The connection is closed if a body was left unread, for its bytes are no request."""
        if not self.is_read and (self.command != "GET" or self.announces_body):
            self.has_refused = self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    @property
    def announces_body(self) -> bool:
        return "Content-Length" in self.headers or "Transfer-Encoding" in self.headers

    def finish(self) -> None:
        if self.has_refused:
            self.linger()
        super().finish()

    def linger(self) -> None:
        """Discard the rest of the body: a connection closed while its client still sends loses the reply."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.rfile.limit(LINGER_BYTES, LINGER_SECONDS)
            self.rfile.discard()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: a line for each request would be most of what a server does."""
