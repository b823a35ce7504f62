"""FastMCP's proxy of the comparison: `fastmcp_proxy.py URL PORT` serves the server at the URL at `/mcp` on the port."""

import sys

from fastmcp.server import create_proxy

url, port = sys.argv[1:]
create_proxy(url).run(
    transport="http", host="127.0.0.1", port=int(port), path="/mcp", show_banner=False, log_level="ERROR"
)
