//! The connection of a process to Redis, which can be cut.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A proxy in front of Redis.
#[derive(Debug)]
pub(super) struct Link {
    port: u16,
    cut: watch::Sender<bool>,
}

impl Link {
    pub(super) async fn new(redis: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, state) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut incoming, _)) = listener.accept().await {
                let mut state = state.clone();
                // A connection that is made while the link is cut is closed at once.
                if *state.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let redis = SocketAddr::from(([127, 0, 0, 1], redis));
                    let Ok(mut outgoing) = TcpStream::connect(redis).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut incoming, &mut outgoing) => {}
                        // Also if the link is gone.
                        _ = state.wait_for(|cut| *cut) => {}
                    }
                });
            }
        });
        Self { port, cut }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Cuts the link, or mends it.
    pub(super) fn set_cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}
