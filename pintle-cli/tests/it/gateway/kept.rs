//! How long the connections to a target with a URL are kept.

use pintle::{
    Server,
    client::Mode,
    server::{Cx, ToolError, tool},
};
use tokio::{sync::mpsc, time::timeout};

use super::{connect, gateway, target};
use crate::support::{PATIENCE, machine::Machine};

/// What a server keeps for a session.
struct Kept(mpsc::UnboundedSender<()>);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A server that tells when a session has ended in which its tool was called.
fn server() -> (Server, mpsc::UnboundedReceiver<()>) {
    let (ended, notified) = mpsc::unbounded_channel();
    let keep = tool("keep", move |cx: Cx| {
        let ended = ended.clone();
        async move {
            let session = cx.session().ok_or("there is no session")?;
            session.get_or_insert_with(|| Kept(ended))?;
            Ok::<_, ToolError>("kept")
        }
    });
    (Server::new("hall", "0").tool(keep), notified)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_does_not_call_is_closed_at_the_target_and_opened_again() {
    for setting in ["idle = \"1ms\"", "lifetime = \"1ms\""] {
        let (server, mut ended) = server();
        let server = server.serve_http("127.0.0.1:0").await.unwrap();
        let machine = Machine::new(&format!("gateway-kept-{}", &setting[..4]));
        let entry = target("hall", server.address()) + "era = \"session\"\n" + setting + "\n";
        let gateway = gateway(&machine, &entry);
        let client = connect(&gateway.url, "alice-token", Mode::Legacy).await;
        for _ in 0..2 {
            assert_eq!(client.call_tool("hall_keep", ()).await.unwrap().text(), "kept");
            timeout(PATIENCE, ended.recv()).await.unwrap().unwrap();
        }
    }
}
