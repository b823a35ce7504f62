//! Servers on the standard streams, for other tests to start: this very program, told by a variable what to be.

use std::{
    env,
    future::poll_fn,
    io,
    net::SocketAddr,
    process::{Command, Stdio as Streams},
    task::Poll,
};

use pintle::transport::{Child, ChildCommand, Incoming, Stdio, Stream, Transport};

use crate::support::transport_calls::{recv, send};

const ROLE: &str = "PINTLE_HELPER";
const ARGS: [&str; 4] = ["--exact", "support::child_servers::helper", "--nocapture", "--quiet"];

/// A server that speaks after the line `ready`; before that, the test harness says a few words.
pub(crate) fn command(role: &str) -> ChildCommand {
    Child::command(env::current_exe().unwrap()).args(ARGS).env(ROLE, role)
}

/// The same, to be given other things than pipes.
pub(crate) fn std_command(role: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, role);
    command
}

/// Tests nothing by itself: it is what the tests of the standard streams start.
#[test]
fn helper() {
    let Ok(role) = env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut stdio = Stdio::new().unwrap();
        send(&mut stdio, "ready").await;
        match role.split_once(' ') {
            None if role == "serve" => {
                let serving = super::load_server::server().serve(stdio).unwrap();
                serving.wait().await.unwrap();
            }
            None if role == "consult" => {
                let serving = super::consulting_server::server().serve(stdio).unwrap();
                serving.wait().await.unwrap();
            }
            Some(("log", path)) => logged(stdio, path).await,
            None => echo(stdio).await,
            Some((_, address)) => relay(stdio, address.parse().unwrap()).await,
        }
    });
    // A thread that still reads a terminal or a file does not keep us.
    drop(runtime);
    std::process::exit(0);
}

/// A server that writes its messages to a file.
async fn logged(stdio: Stdio, path: &str) {
    use pintle::{
        Server,
        message_log::{MessageFile, MessageLog},
        server::{Cx, tool},
    };
    let file = MessageFile::open(path).unwrap();
    let server = Server::new("s", "1")
        .tool(tool("transport", |cx: Cx| async move { cx.transport().to_string() }))
        .message_log(MessageLog::to_file(&file));
    server.serve(stdio).unwrap().wait().await.unwrap();
    file.flush().await;
}

/// Sends back what it gets, and prints and reads wherever it should not.
async fn echo(mut stdio: Stdio) {
    while let Some(message) = recv(&mut stdio).await {
        println!("stray line");
        print!("stray part");
        let child = Command::new("sh").args(["-c", "echo stray child; cat"]).stderr(Streams::null()).status();
        assert!(child.unwrap().success());
        let mut line = String::new();
        assert_eq!(io::stdin().read_line(&mut line).unwrap(), 0);
        let again = Stdio::new().unwrap_err();
        send(&mut stdio, &format!("{message} {:?}", again.kind())).await;
    }
}

/// Passes everything on, both ways.
async fn relay(mut stdio: Stdio, address: SocketAddr) {
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let (reader, writer) = socket.into_split();
    let mut socket = Stream::new(reader, writer);
    let mut clear = [true; 2];
    let _ = poll_fn(|cx| -> Poll<io::Result<()>> {
        let mut ended = false;
        for (side, clear) in clear.iter_mut().enumerate() {
            let (from, to): (&mut dyn Transport, &mut dyn Transport) =
                if side == 0 { (&mut stdio, &mut socket) } else { (&mut socket, &mut stdio) };
            loop {
                if !*clear {
                    match to.poll_flush(cx)? {
                        Poll::Ready(()) => *clear = true,
                        Poll::Pending => break,
                    }
                }
                match from.poll_recv(cx)? {
                    Poll::Pending => break,
                    Poll::Ready(Some(Incoming::Message(message))) => to.send(message),
                    Poll::Ready(_) => {
                        ended = true;
                        break;
                    }
                }
                *clear = false;
            }
        }
        if ended { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await;
}
