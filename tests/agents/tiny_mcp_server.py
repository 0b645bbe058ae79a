"""An MCP server of a few tools, over standard input and output."""

from __future__ import annotations

import os
import time

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # version 1 of the package
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[no-redef]

server = MCPServer("tiny")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def wait(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "waited"


@server.tool()
def variable(name: str) -> str:
    """An environment variable."""
    return os.environ.get(name, "not set")


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(1)


if __name__ == "__main__":
    server.run("stdio")
