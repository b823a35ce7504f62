"""The matrix's server, by the official Python SDK 2.x: `python server.py stdio|http`. Serves both eras."""

import asyncio
import socket
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve, Sample
from mcp.server.mcpserver.resources import TextResource
from mcp.types import (
    Completion,
    CreateMessageResult,
    EmptyResult,
    ListResourcesResult,
    PaginatedRequestParams,
    SamplingMessage,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

NOTES = 7
PAGE = 3
# Nobody waits for longer, whatever goes wrong.
WAIT = 30

mcp = MCPServer("py-interop", version="1.0.0", log_level="ERROR")
waited = {"started": 0, "cancelled": 0}


class Sum(BaseModel):
    sum: int


class Order(BaseModel):
    copies: int


def order(question: str) -> Elicit[Order]:
    return Elicit(question, Order)


def answer(topic: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text=topic))], max_tokens=20)


@mcp.tool()
def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@mcp.tool(structured_output=False)
async def steps(n: int, ctx: Context) -> str:
    for step in range(1, n + 1):
        await ctx.report_progress(step, n)
    return "done"


@mcp.tool(structured_output=False)
async def ask(question: str, order: Annotated[ElicitationResult[Order], Resolve(order)]) -> str:
    return f"accepted {order.data.copies}" if isinstance(order, AcceptedElicitation) else "declined"


@mcp.tool(structured_output=False)
async def sample(topic: str, answer: Annotated[CreateMessageResult, Resolve(answer)]) -> str:
    return f"model said {answer.content.text}"


@mcp.tool(structured_output=False)
async def wait() -> str:
    waited["started"] += 1
    try:
        await asyncio.sleep(WAIT)
    except asyncio.CancelledError:
        waited["cancelled"] += 1
        raise
    return "nobody cancelled"


@mcp.tool(structured_output=False)
def waits() -> str:
    return f"{waited['started']} {waited['cancelled']}"


@mcp.tool(structured_output=False)
async def touch(ctx: Context) -> str:
    # Each era has its own way to tell.
    await ctx.notify_resource_updated("note://1")
    await ctx.session.send_resource_updated("note://1")
    return "touched"


def extra() -> str:
    return "here for now"


@mcp.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    if any(tool.name == "extra" for tool in await mcp.list_tools()):
        mcp.remove_tool("extra")
    else:
        mcp.add_tool(extra)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "changed"


@mcp.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}."


@mcp.completion()
async def complete(ref, argument, context):
    return Completion(values=[name for name in ("ada", "alan", "grace") if name.startswith(argument.value)])


for n in range(NOTES):
    mcp.add_resource(TextResource(uri=f"note://{n}", name=f"note {n}", text=f"This is note {n}."))


async def page(ctx, params):
    start = int(params.cursor) if params and params.cursor else 0
    after = start + PAGE
    resources = (await mcp.list_resources())[start:after]
    return ListResourcesResult(resources=resources, next_cursor=str(after) if after < NOTES else None)


async def nothing(ctx, params):
    return EmptyResult()


# Below the convenience: it has neither pages nor subscriptions.
low = mcp._lowlevel_server
low.add_request_handler("resources/list", PaginatedRequestParams, page)
low.add_request_handler("resources/subscribe", SubscribeRequestParams, nothing)
low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, nothing)


async def serve_http() -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(mcp.streamable_http_app(), log_level="error")).serve([listener])


if sys.argv[1] == "http":
    asyncio.run(serve_http())
else:
    mcp.run()
