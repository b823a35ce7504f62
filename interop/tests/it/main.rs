//! Both of ours with each other: what fails here is no other SDK's fault.

use interop::{
    client::{CELLS, Cell, client},
    server::server,
};
use pintle::{Connection, client::Mode};

async fn connected(mode: Mode) -> Connection {
    client(mode).connect(server().in_process().unwrap()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_cell_works_with_a_session_and_without() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let server = connected(mode).await;
        for Cell { name, ask } in CELLS {
            if let Err(wrong) = ask(&server).await {
                panic!("{mode:?}: {name}: {wrong}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_does_not_get_what_it_wants_says_so() {
    let server = pintle::Server::new("empty", "0");
    let server = client(Mode::Auto).connect(server.in_process().unwrap()).await.unwrap();
    for Cell { name, ask } in CELLS {
        assert!(ask(&server).await.is_err(), "{name}");
    }
}
