//! Tasks beside plain calls: the poll of a task that runs, and a call that could have become one and did not.
//!
//! The requests of the calls that are compared have the same bytes.

use pintle::{
    Server,
    server::{Arguments, ToolRoute, tool},
    transport::Stream,
};
use pintle_tasks::Tasks;

use crate::{
    protocol::{Case, hello, session_call, stateless_call},
    server::{calls, exchange},
};

/// All of them.
pub const CASES: &[Case] = &[
    Case {
        name: "call, tasks declared, stateless",
        run: |n| {
            calls(n, &Server::new("bench", "1.0.0").tool(echo()), 1, &declared(&stateless_call("hello")))
        },
    },
    Case {
        name: "call that could be a task, session",
        run: |n| calls(n, &with_tasks(echo().task("optional")), 1, &session_call("hello")),
    },
    Case {
        name: "call that could be a task, stateless",
        run: |n| calls(n, &with_tasks(echo().task("optional")), 1, &declared(&stateless_call("hello"))),
    },
    Case { name: "poll of a task, session", run: |n| polls(n, &wanted(&session_call("hello"))) },
    Case { name: "poll of a task, stateless", run: |n| polls(n, &declared(&stateless_call("hello"))) },
];

fn echo() -> ToolRoute {
    tool("echo", |Arguments(arguments): Arguments| async move {
        let text: Option<String> = arguments.decode_member("text").unwrap_or_default();
        text.unwrap_or_default()
    })
}

fn with_tasks(tool: ToolRoute) -> Server {
    Server::new("bench", "1.0.0").with(Tasks::new()).tool(tool)
}

/// The request of a client that declares the extension.
fn declared(call: &[u8]) -> Vec<u8> {
    let extension = r#""roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}"#;
    String::from_utf8_lossy(call).replace(r#""roots":{}"#, extension).into_bytes()
}

/// The request of a client that asks for a task in a session.
fn wanted(call: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(call).replace(r#""name":"echo""#, r#""name":"echo","task":{}"#).into_bytes()
}

/// The poll of the task that `start` began, with the metadata of `start`.
fn poll(start: &[u8], id: &str) -> Option<Vec<u8>> {
    let start = String::from_utf8_lossy(start);
    let meta = start.find(r#","_meta""#).and_then(|at| start.get(at..)).unwrap_or("}}");
    Some(
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{{"taskId":"{id}"{meta}"#)
            .into_bytes(),
    )
}

/// Polls a task that does not end, one time after the other.
fn polls(times: usize, start: &[u8]) -> usize {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return 0 };
    let server = with_tasks(tool("echo", std::future::pending::<String>).task("required"));
    runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let Ok(_serving) = server.serve(Stream::new(reader, writer)) else { return 0 };
        let mut buffer = vec![0; 1 << 16];
        exchange(&mut ours, &[hello().as_bytes(), b"\n"].concat(), 1, &mut buffer).await;
        let read = exchange(&mut ours, &[start, b"\n"].concat(), 1, &mut buffer).await;
        let created = String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()).into_owned();
        let id = created.split(r#""taskId":""#).nth(1).and_then(|rest| rest.split('"').next());
        let Some(poll) = id.and_then(|id| poll(start, id)) else { panic!("no task: {created}") };
        let line = [&*poll, b"\n"].concat();
        let mut bytes = 0;
        for _ in 0..times {
            bytes += exchange(&mut ours, &line, 1, &mut buffer).await;
        }
        let last = String::from_utf8_lossy(&buffer).into_owned();
        assert!(last.contains(r#""status":"working""#), "every poll finds the task: {last}");
        bytes
    })
}
