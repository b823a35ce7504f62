//! A server on a byte stream in memory: bytes in, a handler that runs, bytes out.
//!
//! The client is bare: it writes lines that were printed before and looks for line ends.

use pintle::{
    Server,
    server::{Arguments, tool},
    transport::Stream,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::protocol::{Case, hello, session_call, stateless_call};

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "call session, 1 tool", run: |n| calls(n, &server(1), 1, &session_call("hello")) },
    Case { name: "call session, 1,000 tools", run: |n| calls(n, &server(1000), 1, &session_call("hello")) },
    Case { name: "call stateless, 1 tool", run: |n| calls(n, &server(1), 1, &stateless_call("hello")) },
    Case {
        name: "call stateless, 1,000 tools",
        run: |n| calls(n, &server(1000), 1, &stateless_call("hello")),
    },
    Case { name: "call session, 50 at once", run: |n| calls(n, &server(1), 50, &session_call("hello")) },
    Case { name: "call stateless, 50 at once", run: |n| calls(n, &server(1), 50, &stateless_call("hello")) },
];

fn server(tools: usize) -> Server {
    let echo = |Arguments(arguments): Arguments| async move {
        let text: Option<String> = arguments.decode_member("text").unwrap_or_default();
        text.unwrap_or_default()
    };
    let server = Server::new("bench", "1.0.0").tool(tool("echo", echo));
    (1..tools).fold(server, |server, n| server.tool(tool(format!("other-{n}"), || async { "" })))
}

/// One call after the other, `at_once` of them in one write. `times` is a multiple of that.
pub(crate) fn calls(times: usize, server: &Server, at_once: usize, call: &[u8]) -> usize {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return 0 };
    runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let Ok(_serving) = server.serve(Stream::new(reader, writer)) else { return 0 };
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = exchange(&mut ours, &[hello().as_bytes(), b"\n"].concat(), 1, &mut buffer).await;
        // The id is the same in each: only answered ones may be used again, so those of one write need their own.
        let call = String::from_utf8_lossy(call);
        let lines: String = (0..at_once)
            .map(|id| format!("{}\n", call.replace("\"id\":7", &format!("\"id\":{id}"))))
            .collect();
        for _ in 0..times / at_once {
            bytes += exchange(&mut ours, lines.as_bytes(), at_once, &mut buffer).await;
        }
        bytes
    })
}

/// Writes, and reads as many lines. How many bytes came.
pub(crate) async fn exchange(
    stream: &mut DuplexStream,
    bytes: &[u8],
    answers: usize,
    buffer: &mut [u8],
) -> usize {
    if stream.write_all(bytes).await.is_err() {
        return 0;
    }
    let (mut lines, mut read) = (0, 0);
    while lines < answers {
        let Ok(some @ 1..) = stream.read(buffer).await else { return 0 };
        let came = buffer.get(..some).unwrap_or_default();
        lines += came.iter().filter(|byte| **byte == b'\n').count();
        read += some;
    }
    read
}
