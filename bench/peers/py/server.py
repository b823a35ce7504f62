"""The Python SDK's server of the comparison: `server stdio`, or `server http`, which says its address in one line.

With `BENCH_ANSWERS=json` every answer over HTTP is plain JSON, for half the price, and nothing can be told on the way to it.
"""

import os
import socket
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.resources import TextResource
from pydantic import BaseModel, Field

mcp = MCPServer("bench", version="1.0.0", log_level="ERROR")


class Sure(BaseModel):
    ok: bool


def sure() -> Elicit[Sure]:
    return Elicit("Go on?", Sure)


async def echo(text: Annotated[str, Field(description="text to echo")]) -> str:
    """Echo the text back"""
    return text


async def add(
    a: Annotated[float, Field(description="first number")], b: Annotated[float, Field(description="second number")]
) -> str:
    """Add two numbers"""
    return str(a + b)


async def progress(ctx: Context) -> str:
    """Tell of ten steps"""
    for step in range(1, 11):
        await ctx.report_progress(step, 10)
    return "done"


async def confirm(answer: Annotated[ElicitationResult[Sure], Resolve(sure)]) -> str:
    """Ask whether to go on"""
    return "yes" if isinstance(answer, AcceptedElicitation) and answer.data.ok else "no"


async def trivial(value: Annotated[str, Field(description="a value")]) -> str:
    return value


# Only text, as the other servers answer: structured content would come on top.
for tool in (echo, add, progress, confirm):
    mcp.add_tool(tool, structured_output=False)
for n in range(100):
    mcp.add_tool(trivial, name=f"tool_{n:03}", description=f"Trivial tool number {n}", structured_output=False)
mcp.add_resource(TextResource(uri="bench://note", name="note", text="A note."))

match sys.argv[1:]:
    case ["stdio"]:
        mcp.run()
    case ["http"]:
        import uvicorn

        json = os.environ.get("BENCH_ANSWERS") == "json"
        app = mcp.streamable_http_app(json_response=json, max_sessions=None)
        config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="critical", access_log=False)
        listener = socket.create_server(("127.0.0.1", 0))
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(config).run([listener])
    case _:
        sys.exit("say `http` or `stdio`")
