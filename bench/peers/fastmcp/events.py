"""Stores events of 256 bytes in the event store of FastMCP with a Redis, and prints how many in a second: URL EVENTS STREAMS."""

import asyncio
import sys
import time

from fastmcp.server.event_store import EventStore
from key_value.aio.stores.redis import RedisStore
from mcp_types import JSONRPCNotification


async def main(url: str, events: int, streams: int) -> None:
    store = EventStore(storage=RedisStore(url=url), max_events_per_stream=1000)
    message = JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": "x" * 180})

    async def write(stream: int) -> None:
        for _ in range(events // streams):
            await store.store_event(f"stream-{stream}", message)

    await store.store_event("warm", message)
    start = time.monotonic()
    await asyncio.gather(*(write(stream) for stream in range(streams)))
    print(round(events // streams * streams / (time.monotonic() - start)))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
