"""Serves an OpenAPI document on stdio, and writes what became of it, and what that took: DOCUMENT REPORT."""

import asyncio
import json
import os
import resource
import signal
import sys

import httpx2
from fastmcp import FastMCP


def read(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            return json.load(file)
        import yaml

        return yaml.safe_load(file)


def cpu() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * 1000)


def main(path: str, report: str) -> None:
    client = httpx2.AsyncClient(base_url="https://api.example.com")
    server = FastMCP.from_openapi(openapi_spec=read(path), client=client)
    before = cpu()
    tools = len(asyncio.run(server.list_tools()))
    counting = cpu() - before

    def write(*_: object) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = {"tools": tools, "left_out": {}, "peak_kb": peak, "cpu_ms": cpu() - counting}
        with open(report, "w", encoding="utf-8") as file:
            json.dump(found, file)

    def end(*_: object) -> None:
        write()
        os._exit(0)

    # Now, too: a client that does not wait ends this process.
    write()
    signal.signal(signal.SIGTERM, end)
    server.run(transport="stdio", show_banner=False)
    write()


main(sys.argv[1], sys.argv[2])
