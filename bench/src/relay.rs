//! A relay from HTTP to HTTP. The server behind it has a process of its own, whose work is not counted, and the client on the
//! socket does next to nothing.

use std::{
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
};

use pintle::{
    Client, Server,
    client::{Mode, http::Http},
};
use pintle_relay::Relay;
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    client::Behind,
    http::ask_often,
    protocol::Case,
    wire::{Ask, Era},
};

/// All of them. The first era is that of the client, the second that of the server behind.
pub const CASES: &[Case] = &[
    Case { name: "HTTP relay, session to session", run: |n| calls(n, Era::Session, Mode::Legacy) },
    Case { name: "HTTP relay, session to stateless", run: |n| calls(n, Era::Session, Mode::Modern) },
    Case { name: "HTTP relay, stateless to session", run: |n| calls(n, Era::Stateless, Mode::Legacy) },
    Case { name: "HTTP relay, stateless to stateless", run: |n| calls(n, Era::Stateless, Mode::Modern) },
];

/// One call after the other on one connection. How many bytes came back.
fn calls(times: usize, era: Era, mode: Mode) -> usize {
    let (Some(behind), Some(runtime)) = (Behind::start("server"), crate::http::runtime()) else { return 0 };
    runtime.block_on(async {
        let Some(server) = relay(&behind.address, mode).await else { return 0 };
        let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else { return 0 };
        let Ok(address) = listener.local_addr() else { return 0 };
        let Ok(http) = server.http() else { return 0 };
        let Ok(serving) = http.at("/mcp").serve(listener) else { return 0 };
        let (done, mut asked) = oneshot::channel();
        std::thread::spawn(move || done.send(ask_often(address, times, Ask::Echo, era).unwrap_or(0)));
        let mut serving = pin!(serving.wait());
        poll_fn(|task| {
            let _ = serving.as_mut().poll(task);
            Pin::new(&mut asked).poll(task).map(|bytes| bytes.unwrap_or(0))
        })
        .await
    })
}

async fn relay(address: &str, mode: Mode) -> Option<Server> {
    let behind = Http::new(format!("http://{address}/mcp")).ok()?;
    let relay = Relay::connect(Client::new("relay", "1.0.0").mode(mode), move || {
        let behind = behind.clone();
        async move { Ok(behind) }
    });
    Some(relay.await.ok()?.share_anonymous().into_server())
}
