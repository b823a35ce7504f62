"""The matrix's client, by the official Python SDK 2.x: `python client.py session|stateless|auto URL|PROGRAM…`.

Prints a line of JSON for each cell.
"""

import asyncio
import json
import os
import sys
import warnings
from contextlib import asynccontextmanager

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.types import (
    CreateMessageResult,
    ElicitResult,
    PromptReference,
    ResourceUpdatedNotification,
    TextContent,
    ToolListChangedNotification,
)

PATIENCE = 10
LOOK = 0.02
MODES = {"session": "legacy", "stateless": "2026-07-28", "auto": "auto"}
heard: asyncio.Queue = asyncio.Queue()


async def answer_form(ctx, params):
    if params.message == "no":
        return ElicitResult(action="decline")
    return ElicitResult(action="accept", content={"copies": 2})


async def answer_model(ctx, params):
    return CreateMessageResult(role="assistant", model="none", content=TextContent(type="text", text="pong"))


async def on_message(message):
    if isinstance(message, ResourceUpdatedNotification):
        heard.put_nowait(f"updated {message.params.uri}")
    elif isinstance(message, ToolListChangedNotification):
        heard.put_nowait("tools changed")


def equal(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r} instead of {wanted!r}")
    return json.dumps(found)


class Cells:
    """What is asked for, a method each, in order."""

    def __init__(self, client):
        self.client = client

    async def text(self, name, arguments=None):
        result = await self.client.call_tool(name, arguments or {})
        return "".join(block.text for block in result.content)

    async def waits(self):
        started, cancelled = (await self.text("waits")).split()
        return int(started), int(cancelled)

    async def tools(self):
        names, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return names

    @asynccontextmanager
    async def watching(self, uri=None):
        """Gives a function that waits for what is watched: a resource, or the list of tools."""
        wanted = f"updated {uri}" if uri else "tools changed"

        async def told():
            while await heard.get() != wanted:
                pass

        if self.client.protocol_version == MODES["stateless"]:
            asked = {"resource_subscriptions": [uri]} if uri else {"tools_list_changed": True}
            async with self.client.listen(**asked) as subscription:

                async def told_by_stream():
                    async for event in subscription:
                        if isinstance(event, ResourceUpdated if uri else ToolsListChanged):
                            return

                yield told_by_stream
        elif uri:
            await self.client.subscribe_resource(uri)
            yield told
            await self.client.unsubscribe_resource(uri)
        else:
            yield told

    async def list(self):
        names = await self.tools()
        missing = {"add", "steps", "ask", "sample"} - set(names)
        return equal(sorted(missing), [])

    async def call(self):
        return equal((await self.client.call_tool("add", {"a": 2, "b": 3})).structured_content, {"sum": 5})

    async def bad_arguments(self):
        """Either way of saying no is right; a result is not."""
        try:
            result = await self.client.call_tool("add", {"a": "two", "b": 3})
        except MCPError as error:
            return equal(error.error.code, -32602)
        return equal(result.is_error, True)

    async def progress(self):
        seen = []

        async def see(progress, total, message):
            seen.append([progress, total])

        await self.client.call_tool("steps", {"n": 3}, progress_callback=see)
        return equal(seen, [[1, 3], [2, 3], [3, 3]])

    async def answer(self):
        return equal(await self.text("ask", {"question": "yes"}), "accepted 2")

    async def decline(self):
        return equal(await self.text("ask", {"question": "no"}), "declined")

    async def sample(self):
        return equal(await self.text("sample", {"topic": "hi"}), "model said pong")

    async def cancel(self):
        started, cancelled = await self.waits()
        waiting = asyncio.create_task(self.client.call_tool("wait", {}))
        while (await self.waits())[0] == started:
            await asyncio.sleep(LOOK)
        waiting.cancel()
        while (await self.waits())[1] == cancelled:
            await asyncio.sleep(LOOK)
        return "cancelled"

    async def read(self):
        return equal((await self.client.read_resource("note://1")).contents[0].text, "This is note 1.")

    async def update(self):
        async with self.watching("note://1") as told:
            await self.text("touch")
            await told()
        return "told"

    async def change(self):
        before = "extra" in await self.tools()
        async with self.watching() as told:
            await self.text("grow")
            await told()
        return equal("extra" in await self.tools(), not before)

    async def complete(self):
        found = await self.client.complete(PromptReference(type="ref/prompt", name="greet"), {"name": "name", "value": "a"})
        return equal(found.completion.values, ["ada", "alan"])

    async def pages(self):
        pages, cursor = [], None
        while True:
            page = await self.client.list_resources(cursor=cursor)
            pages.append(len(page.resources))
            cursor = page.next_cursor
            if cursor is None:
                return equal(pages, [3, 3, 1])


CELLS = (
    "list call bad_arguments progress answer decline sample cancel read update change complete pages".split()
)


def tell(**line):
    print(json.dumps(line), flush=True)


def words(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def main():
    era, *place = sys.argv[1:]
    if not place[0].startswith("http"):
        place = [StdioServerParameters(command=place[0], args=place[1:])]
    client = Client(
        place[0],
        mode=MODES[era],
        elicitation_callback=answer_form,
        sampling_callback=answer_model,
        message_handler=on_message,
    )
    opened = False
    try:
        async with client:
            opened = True
            tell(cell="open", ok=client.protocol_version)
            cells = Cells(client)
            for name in CELLS:
                cell = name.replace("_", "-")
                try:
                    tell(cell=cell, ok=await asyncio.wait_for(getattr(cells, name)(), PATIENCE))
                except Exception as error:
                    tell(cell=cell, error=words(error))
    except BaseException as error:
        tell(cell="close" if opened else "open", error=words(error))


warnings.simplefilter("ignore")
asyncio.run(main())
# What may still hang on a thread is not worth waiting for.
os._exit(0)
