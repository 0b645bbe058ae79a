"""Finds stop strings exactly: a response ends with the token that completes one.

The strings of a request become an Aho-Corasick automaton over bytes, then one over token ids: a table of states by
tokens, in which a step of all rows is one lookup. Matching is by bytes, so a string may begin and end inside tokens
or characters.

Legend: K states, V tokens of the vocabulary, R rows, E entries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foresail.engine.advance import BROKEN, STOPPED, SampledTokens

NONE, FOUND = 0, 1  # the states of rows without stop strings, and after one


class StopStrings:
    """All requests' stop strings in one table; every set of them has its own start state."""

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        self.vocabulary = vocabulary
        self.next_KV = np.repeat([[NONE], [FOUND]], len(vocabulary), axis=1).astype(np.int32)
        self.begins: dict[tuple[str, ...], int] = {(): NONE}

    def state(self, strings: tuple[str, ...], response: Sequence[int]) -> int:
        """The state of a request with these strings after these tokens. FOUND: the last one completes a string;
        earlier complete ones are ignored.
        """
        if strings not in self.begins:
            self._add(strings)
        begin = state = self.begins[strings]
        if begin != NONE:
            for token in self._tail(strings, response):
                state = int(self.next_KV[begin if state == FOUND else state, token])
        return state

    def _tail(self, strings: tuple[str, ...], response: Sequence[int]) -> Sequence[int]:
        """The last tokens, which determine the state: no unfinished string begins before them, nor a finished one
        that overlaps with an unfinished one.
        """
        num_bytes, first = 2 * max(len(string.encode()) for string in strings), len(response) - 1
        while first > 0 and num_bytes > 0:  # bytes before the last token
            first -= 1
            num_bytes -= len(self.vocabulary[response[first]])
        return response[max(first, 0) :]

    def cut(
        self, states_R: np.ndarray, sampled: SampledTokens, firsts_R: np.ndarray
    ) -> tuple[np.ndarray, SampledTokens]:
        """The rows' states after their sampled tokens; tokens after a stop string are dropped."""
        if not states_R.any():
            return states_R, sampled
        counts_R, ends_R = sampled.counts_E[firsts_R], sampled.ends_E[firsts_R]
        for place in range(int(counts_R.max())):
            rows = np.flatnonzero((counts_R > place) & (states_R != FOUND))
            states_R[rows] = self.next_KV[states_R[rows], sampled.tokens_E[firsts_R[rows] + place]]
            counts_R[rows[states_R[rows] == FOUND]] = place + 1
        complete_R = states_R == FOUND
        if not complete_R.any():
            return states_R, sampled
        ends_R[complete_R & (ends_R != BROKEN)] = STOPPED
        counts_E, ends_E = sampled.counts_E.copy(), sampled.ends_E.copy()
        counts_E[firsts_R], ends_E[firsts_R] = counts_R, ends_R
        return states_R, replace(sampled, counts_E=counts_E, ends_E=ends_E)

    def _add(self, strings: tuple[str, ...]) -> None:
        if not self.vocabulary:
            raise ValueError(
                f"this engine was given no vocabulary, without which it cannot find the stop strings {strings}"
            )
        first = len(self.next_KV)
        bytes_KB = byte_automaton([string.encode() for string in strings], first)
        self.next_KV = np.concatenate((self.next_KV, by_token(bytes_KB, first, self.vocabulary)))
        self.begins[strings] = first


def byte_automaton(strings: Sequence[bytes], first: int) -> np.ndarray:
    """The next state for each state, numbered from `first` on, and byte: (K, 256)."""
    children: list[dict[int, int]] = [{}]
    ends = {0: False}
    for string in strings:
        state = 0
        for byte in string:
            if byte not in children[state]:
                children[state][byte] = len(children)
                ends[len(children)] = False
                children.append({})
            state = children[state][byte]
        ends[state] = True
    next_KB = np.zeros((len(children), 256), dtype=np.int32)
    for byte, child in children[0].items():
        next_KB[0, byte] = child
    waiting = deque(
        (child, 0) for child in children[0].values()
    )  # with the state of its longest proper suffix
    while waiting:
        state, suffix = waiting.popleft()
        ends[state] |= ends[suffix]
        next_KB[state] = next_KB[suffix]
        for byte, child in children[state].items():
            waiting.append((child, int(next_KB[suffix, byte])))
            next_KB[state, byte] = child
    is_end_K = np.array([ends[state] for state in range(len(children))])
    return np.where(is_end_K[next_KB], FOUND, next_KB + first).astype(np.int32)


def by_token(next_KB: np.ndarray, first: int, vocabulary: Sequence[bytes]) -> np.ndarray:
    """The next state for each state and token, byte after byte for all tokens together."""
    longest_first = sorted(range(len(vocabulary)), key=lambda token: -len(vocabulary[token]))
    lengths = np.array([len(vocabulary[token]) for token in longest_first])
    order = np.array(longest_first)
    states_KV = np.repeat(np.arange(first, first + len(next_KB), dtype=np.int32)[:, None], len(order), axis=1)
    for place in range(int(lengths.max(initial=0))):
        longer = int(np.searchsorted(-lengths, -place))  # number of tokens with a byte at this place
        bytes_V = np.array([vocabulary[token][place] for token in longest_first[:longer]])
        before_KV = states_KV[:, :longer]
        after_KV = next_KB[np.maximum(before_KV - first, 0), bytes_V]
        states_KV[:, :longer] = np.where(before_KV == FOUND, FOUND, after_KV)
    by_id_KV = np.empty_like(states_KV)
    by_id_KV[:, order] = states_KV
    return by_id_KV
