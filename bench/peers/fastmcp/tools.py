"""A server of FastMCP on stdio with `echo`, and so many tools beside it: TOOLS."""

import sys

from fastmcp import FastMCP

server = FastMCP("tools")


@server.tool
def echo(text: str) -> str:
    """Returns the text."""
    return text


def add(number: int) -> None:
    @server.tool(name=f"tool_{number}", description="Returns the text.")
    def tool(text: str, count: int = 1) -> str:
        return text * count


for number in range(int(sys.argv[1])):
    add(number)
server.run(transport="stdio", show_banner=False)
