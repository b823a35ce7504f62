//! Our client and our server on a byte stream in memory: a call all the way there and back.

use pintle::{
    Client, Server,
    client::Mode,
    server::{Arguments, tool},
    transport::Stream,
};

use crate::protocol::Case;

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "both sides, session", run: |n| calls(n, Mode::Legacy) },
    Case { name: "both sides, stateless", run: |n| calls(n, Mode::Modern) },
];

fn calls(times: usize, mode: Mode) -> usize {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return 0 };
    runtime.block_on(async {
        let echo = |Arguments(arguments): Arguments| async move { arguments.as_str().to_owned() };
        let server = Server::new("bench", "1.0.0").tool(tool("echo", echo));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let Ok(_serving) = server.serve(Stream::new(reader, writer)) else { return 0 };
        let (reader, writer) = tokio::io::split(ours);
        let client = Client::new("bench", "1.0.0").mode(mode);
        let Ok(server) = client.connect(Stream::new(reader, writer)).await else { return 0 };
        let mut answered = 0;
        for _ in 0..times {
            let arguments = pintle_types::JsonObject::from_iter([("text".to_owned(), "hello".into())]);
            answered += usize::from(server.call_tool("echo", arguments).await.is_ok());
        }
        assert_eq!(answered, times, "every call is answered");
        answered
    })
}
