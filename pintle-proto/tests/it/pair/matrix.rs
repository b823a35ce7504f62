//! Every kind of client with every kind of server: which revision they speak, or why they cannot.

use pintle_proto::client::{Mode, OpenError};

use super::{
    ALL, R1, R2, R3, R4, R5, SESSIONS, client::Client, engines::Pair, features::run_all, server::Server,
};

/// The columns of the table.
const SERVERS: [&[&str]; 7] = [&[R1], &[R2], &[R3], &[R4], &[R5], ALL, SESSIONS];

struct Row {
    mode: Mode,
    revisions: &'static [&'static str],
    /// What it may try, newest first.
    tries: &'static [&'static str],
    /// What is spoken with each of `SERVERS`; nothing where they have nothing in common.
    spoken: [&'static str; 7],
}

const NO: &str = "";

#[rustfmt::skip]
const CLIENTS: [Row; 8] = [
    //                                                                 only R1  R2  R3  R4  R5  all  sessions
    Row { mode: Mode::Auto,   revisions: &[R1], tries: &[R1],     spoken: [R1, NO, NO, NO, NO, R1, R1] },
    Row { mode: Mode::Auto,   revisions: &[R2], tries: &[R2],     spoken: [NO, R2, NO, NO, NO, R2, R2] },
    Row { mode: Mode::Auto,   revisions: &[R3], tries: &[R3],     spoken: [NO, NO, R3, NO, NO, R3, R3] },
    Row { mode: Mode::Auto,   revisions: &[R4], tries: &[R4],     spoken: [NO, NO, NO, R4, NO, R4, R4] },
    Row { mode: Mode::Auto,   revisions: &[R5], tries: &[R5],     spoken: [NO, NO, NO, NO, R5, R5, NO] },
    Row { mode: Mode::Auto,   revisions: ALL,   tries: ALL,       spoken: [R1, R2, R3, R4, R5, R5, R4] },
    Row { mode: Mode::Legacy, revisions: ALL,   tries: SESSIONS,  spoken: [R1, R2, R3, R4, NO, R4, R4] },
    Row { mode: Mode::Modern, revisions: ALL,   tries: &[R5],     spoken: [NO, NO, NO, NO, R5, R5, NO] },
];

#[test]
fn every_client_with_every_server() {
    for client in &CLIENTS {
        for (revisions, spoken) in SERVERS.iter().zip(client.spoken) {
            let mut pair = Pair::new(Client::new(client.mode, client.revisions), Server::new(revisions));
            let opened = pair.open();
            let who = format!("{:?} {:?} with {revisions:?}", client.mode, client.revisions);
            if spoken == NO {
                let ours = client.tries.iter().map(|name| name.parse().unwrap()).collect();
                let theirs = revisions.iter().map(|name| (*name).into()).collect();
                assert_eq!(opened, Err(OpenError::NothingInCommon { ours, theirs }), "{who}");
                continue;
            }
            assert_eq!(opened.as_deref(), Ok(spoken), "{who}");
            check_opening(&pair, spoken, client.tries.contains(&R5));
            run_all(&mut pair);
        }
    }
}

/// Nobody is asked more than needed: one probe if there is a choice, one handshake if it comes to that.
fn check_opening(pair: &Pair, spoken: &str, probes: bool) {
    let sent = |method: &str| {
        let name = format!(r#""method":"{method}""#);
        pair.wire.iter().filter(|line| line.contains(&name)).count()
    };
    assert_eq!(sent("server/discover"), usize::from(probes));
    assert_eq!(sent("initialize"), usize::from(spoken != R5));
    assert_eq!(sent("notifications/initialized"), usize::from(spoken != R5));
}
