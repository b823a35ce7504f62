//! The bridges that are measured, and their command lines.

/// The two sides of a bridge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sides {
    /// No bridge: the server over HTTP.
    None,
    HttpToHttp,
    /// A program, served over HTTP.
    HttpToStdio,
    /// A server over HTTP, as a program.
    StdioToHttp,
}

impl Sides {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "the server itself, over HTTP",
            Self::HttpToHttp => "HTTP to HTTP",
            Self::HttpToStdio => "HTTP to a program",
            Self::StdioToHttp => "stdio to HTTP",
        }
    }
}

/// A bridge in one of its directions, and its command line: `URL`, `PORT`, `SERVER`, `TS` and `PY` are replaced.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) sides: Sides,
    pub(super) name: &'static str,
    pub(super) command: &'static str,
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row { sides: Sides::None, name: "pintle", command: "SERVER http" },
    Row { sides: Sides::HttpToHttp, name: "pintle bridge", command: "PINTLE bridge --http 127.0.0.1:PORT URL" },
    Row { sides: Sides::HttpToHttp, name: "FastMCP proxy", command: "FASTMCP/bin/python FASTMCP/../fastmcp_proxy.py URL PORT" },
    Row { sides: Sides::HttpToStdio, name: "pintle bridge", command: "PINTLE bridge --http 127.0.0.1:PORT -- SERVER stdio" },
    Row { sides: Sides::HttpToStdio, name: "supergateway", command: "node TS/supergateway/dist/index.js --outputTransport streamableHttp --stateful --port PORT --streamableHttpPath /mcp --logLevel none --stdio SERVER\u{a0}stdio" },
    Row { sides: Sides::HttpToStdio, name: "mcp-proxy", command: "PROXY/bin/mcp-proxy --port PORT --host 127.0.0.1 -- SERVER stdio" },
    Row { sides: Sides::StdioToHttp, name: "pintle bridge", command: "PINTLE bridge URL" },
    Row { sides: Sides::StdioToHttp, name: "mcp-remote", command: "node TS/mcp-remote/dist/proxy.js URL --allow-http --transport http-only --silent" },
    Row { sides: Sides::StdioToHttp, name: "mcp-proxy", command: "PROXY/bin/mcp-proxy --transport streamablehttp URL" },
    Row { sides: Sides::StdioToHttp, name: "supergateway", command: "node TS/supergateway/dist/index.js --streamableHttp URL --outputTransport stdio --logLevel none" },
];

impl Row {
    /// Whether it is ours.
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with("pintle")
    }
}
