"""The messages between a judge and its zygote.

An order is a list of dicts, one per process to start, written by `marshal`: the zygote trusts its judge. The judge
does not trust the zygote, so an answer is records of four numbers and nothing else.
"""

from __future__ import annotations

import struct

BUILD = "build"  # the role that compiles C++
STARTED, FAILED = b"+", b"-"  # first byte of every answer; what follows FAILED is the reason
# What a session's owner writes into the file of calls: the number of the call that runs, from 1.
NO_CALL, KILL = 0, (1 << 64) - 1
ENDED = struct.Struct("=i?qd")  # wait status, whether time ran out, peak memory in KB, processor seconds
