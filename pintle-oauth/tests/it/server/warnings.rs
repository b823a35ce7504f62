//! What a protected server warns of when it starts.

use pintle::{
    Server,
    server::{StateKeys, store::MemoryStore},
};
use pintle_oauth::server::{Jwt, Protected};
use tracing::Level;

use crate::support::subscriber::Printed;

#[tokio::test]
async fn keys_that_several_processes_have_need_a_shared_store_of_proofs() {
    let shared = || {
        let server = Server::new("notes", "1").state_keys(StateKeys::from([7; 32]));
        server.replay_store(MemoryStore::new())
    };
    let protected =
        || Protected::new("https://mcp.test/mcp", Jwt::new("https://login.test").unwrap()).unwrap();
    for (server, protected, address, is_warned) in [
        (shared(), protected(), "0.0.0.0:0", true),
        (shared(), protected().nonce_store(MemoryStore::new()), "0.0.0.0:0", false),
        (shared(), protected(), "127.0.0.1:0", false),
        // Its keys are those of one process.
        (Server::new("notes", "1"), protected(), "0.0.0.0:0", false),
    ] {
        let printed = Printed::default();
        let _subscribed = printed.subscribe(Level::WARN);
        let _serving = protected.serve(&server, address).await.unwrap();
        let text = printed.text();
        assert_eq!(text.contains("a DPoP proof is accepted once by each process"), is_warned, "{text}");
        assert_eq!(text.contains("`Protected::nonce_store`"), is_warned, "{text}");
    }
}
