"""Search: what is found, over a file and over a server, and what happens when there is none."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.tools.corpus import CorpusPassage, read_corpus
from foresail.agents.tools.load_tool import load_tool
from foresail.agents.tools.search import Index, search_tool
from foresail.agents.tools.search_client import SearchClient
from foresail.agents.tools.search_server import LONGEST_BODY, SearchServer

pytest.importorskip("bm25s", reason='search needs bm25s: pip install "foresail[agents]"')

PASSAGES = [
    CorpusPassage("Paris", "Paris is the capital of France."),
    CorpusPassage("France", "France is a country. Its anthem is the Marseillaise."),
    CorpusPassage("Fox", "The quick brown fox is an animal."),
    CorpusPassage("Lyon", "Lyon is a city of France on the Rhône."),
]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PASSAGES)


@pytest.fixture(scope="module")
def server(index: Index) -> Iterator[SearchServer]:
    server = SearchServer(index, port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url(server: SearchServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def write_corpus(folder: Path, name: str = "corpus.jsonl") -> Path:
    lines = "".join(json.dumps(passage._asdict()) + "\n" for passage in PASSAGES)
    path = folder / name
    path.write_bytes(gzip.compress(lines.encode()) if name.endswith(".gz") else lines.encode())
    return path


def test_the_passage_with_the_rarest_words_comes_first(index: Index) -> None:
    assert [passage.title for passage in index.find("What is the capital of France?", 2)] == [
        "Paris",
        "France",
    ]
    assert [passage.title for passage in index.find("RHÔNE", 10)] == ["Lyon"]


def test_a_query_without_known_words_finds_nothing(index: Index) -> None:
    assert [index.find(query, 3) for query in ("", "the", "zzz", "<|im_end|>", "?!")] == [[]] * 5


@settings(max_examples=100, deadline=None)
@given(query=st.text() | st.sampled_from(["fox " * 10**5, "\ud800 fox", "\0"]), count=st.integers(1, 20))
def test_every_query_is_answered(index: Index, query: str, count: int) -> None:
    assert len(index.find(query, count)) <= count


def test_a_corpus_may_be_compressed_and_have_its_titles_elsewhere(tmp_path: Path) -> None:
    assert (
        read_corpus(write_corpus(tmp_path)) == read_corpus(write_corpus(tmp_path, "c.jsonl.gz")) == PASSAGES
    )
    other = tmp_path / "other.jsonl"
    other.write_text(
        json.dumps({"id": "0", "contents": '"Paris"\nThe capital.'}) + '\n\n{"text": "no title"}\n'
    )
    assert read_corpus(other) == [CorpusPassage("Paris", "The capital."), CorpusPassage("", "no title")]


@pytest.mark.parametrize("line", ["{", "[1]", '{"title": "a"}', '{"text": 3}', '{"contents": 3}', "3"])
def test_a_line_without_text_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "a"}\n' + line)
    with pytest.raises(ValueError, match="line 2: a passage is"):
        read_corpus(path)


def test_the_tool_over_a_file_and_over_a_server_answer_alike(tmp_path: Path, server: SearchServer) -> None:
    tools = [
        load_tool("search", corpus=str(write_corpus(tmp_path)), passages=2),
        load_tool("search", url=url(server), passages=2),
    ]
    for tool in tools:
        assert tool.name == "search" and list(tool.parameters["properties"]) == ["query"]
        answer = asyncio.run(tool.call({"query": "capital of France"}))
        assert answer.text.startswith("[1] Paris\nParis is the capital of France.\n\n[2] France\n")
        assert asyncio.run(tool.call({"query": "zzz"})).text == "no passage has these words; try others"


def test_many_clients_are_answered_at_the_same_time(server: SearchServer, index: Index) -> None:
    client = SearchClient(url(server))
    queries = [passage.title for passage in PASSAGES] * 25
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda query: client.find(query, 3), queries))
    assert found == [index.find(query, 3) for query in queries]


def test_a_server_that_is_not_there_breaks_the_environment() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(EnvironmentBroken, match="cannot be reached"):
        SearchClient(f"http://127.0.0.1:{port}", pauses=(0.0,)).find("Paris", 3)


def test_a_server_that_is_no_search_server_breaks_the_environment() -> None:
    for reply in (b"HTTP/1.0 200 OK\r\n\r\n[]", b"HTTP/1.0 500 No\r\n\r\n", b"nonsense", b""):
        with socket.create_server(("127.0.0.1", 0)) as listening:

            def answer(listening: socket.socket = listening, reply: bytes = reply) -> None:
                with listening.accept()[0] as connection:
                    connection.recv(1 << 16)
                    connection.sendall(reply)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            with pytest.raises(EnvironmentBroken):
                SearchClient(f"http://127.0.0.1:{listening.getsockname()[1]}", pauses=()).find("Paris", 3)
            thread.join()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/search", b"{", 400),
        ("/search", b"[" * 10_000, 400),
        ("/search", b'{"query": 3}', 400),
        ("/search", b'{"query": "a", "count": 0}', 400),
        ("/search", b'{"query": "a", "count": true}', 400),
        ("/search", b'{"query": "a", "count": 10000000}', 400),
        ("/nothing", b'{"query": "a"}', 404),
        ("/search", b" " * (LONGEST_BODY + 1), 413),
        ("/search", b'{"query": "Paris"}', 200),
    ],
)
def test_the_server_refuses_what_is_no_request(
    server: SearchServer, path: str, body: bytes, status: int
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    assert answer.status == status and json.loads(answer.read())
    connection.close()


def test_the_server_tells_its_health(server: SearchServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("GET", "/health")
    assert json.loads(connection.getresponse().read()) == {"passages": 4}
    connection.close()


def test_a_search_over_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a corpus file or the url"):
        search_tool()
    with pytest.raises(ValueError, match="does not exist"):
        search_tool(corpus=str(tmp_path / "none.jsonl"))
    with pytest.raises(ValueError, match="begins with http://"):
        search_tool(url="localhost:80")
