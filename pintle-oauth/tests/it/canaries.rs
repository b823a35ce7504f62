//! Logins of every kind, and a search for their secrets in all that is logged.

use std::{io::Write as _, time::Duration};

use pintle::{Client, Connection, Result, message_log::MessageLog};
use pintle_oauth::{
    client::{OAuth, Registered},
    server::Jwt,
    testing::{Asked, Endpoint, Fault},
};
use tracing::Level;

use crate::support::{
    notes::{ERAS, Notes, STATELESS},
    subscriber::Printed,
};

impl Printed {
    /// Connects with a message log, and prints what a program might.
    async fn connect(&mut self, notes: &Notes, oauth: &OAuth, revision: &str) -> Result<Connection> {
        let http = notes.http().auth(oauth.clone());
        let client = Client::new("test", "0").message_log(MessageLog::to_tracing());
        writeln!(self, "{oauth:?} {http:?} {client:?}").unwrap();
        let connected = client.revisions([revision.parse().unwrap()]).connect(http).await;
        writeln!(self, "{connected:?}").unwrap();
        connected
    }
}

/// The secrets in requests to an authorization server.
fn secrets(asked: &[Asked]) -> Vec<String> {
    const NAMES: [&str; 8] = [
        "code",
        "code_verifier",
        "client_secret",
        "client_assertion",
        "refresh_token",
        "token",
        "assertion",
        "state",
    ];
    let of = |asked: &Asked| NAMES.map(|name| asked.parameter(name).map(str::to_owned));
    asked.iter().flat_map(of).flatten().collect()
}

#[tokio::test(start_paused = true)]
async fn no_secret_of_a_login_is_logged() {
    let mut printed = Printed::default();
    let _subscribed = printed.subscribe(Level::TRACE);
    let (mut found, mut asked) = (vec!["s3cret".to_owned(), "eyJ".to_owned()], Vec::new());
    for era in ERAS {
        // Signed tokens, refreshed before each call, and more rights.
        let notes = Notes::new();
        notes.hurry();
        let server = printed.connect(&notes, &notes.oauth(), era).await.unwrap();
        server.call_tool("read", ()).await.unwrap();
        notes.login.clear_faults();
        server.call_tool("write", ()).await.unwrap();
        // A refresh that fails, and one that is refused.
        notes.login.lifetime(Duration::from_secs(1));
        notes.login.fault(Fault::Status(Endpoint::Token, 500));
        notes.login.revoke_access();
        let _ = server.call_tool("read", ()).await;
        notes.login.clear_faults();
        notes.login.revoke_refresh();
        let _ = server.call_tool("read", ()).await;
        asked.extend(notes.login.log());
        found.extend(notes.login.issued());

        // Opaque tokens that the server introspects.
        let notes = Notes::asking();
        let server = printed.connect(&notes, &notes.oauth(), era).await.unwrap();
        server.call_tool("read", ()).await.unwrap();
        notes.login.fault(Fault::Status(Endpoint::Introspect, 500));
        server.call_tool("read", ()).await.unwrap_err();
        asked.extend(notes.login.log());
        found.extend(notes.login.issued());
    }
    // Tokens that are bound to a key, and a client with a secret.
    let notes = Notes::protected(
        |login, hosts| Jwt::new(login).unwrap().web(hosts),
        |protected| protected.dpop_only(),
    );
    notes.login.bind_tokens("n0nce");
    let server = printed.connect(&notes, &notes.oauth().dpop(), STATELESS).await.unwrap();
    server.call_tool("read", ()).await.unwrap();
    asked.extend(notes.login.log());
    found.extend(notes.login.issued());
    let notes = Notes::new();
    notes.login.add_client_with_secret("bot", "s3cret");
    let bot = Registered::new(notes.login.issuer(), "bot").secret("s3cret");
    let server =
        printed.connect(&notes, &OAuth::machine(bot).web(notes.hosts.clone()), STATELESS).await.unwrap();
    server.call_tool("read", ()).await.unwrap();
    asked.extend(notes.login.log());
    found.extend(notes.login.issued());

    found.extend(secrets(&asked));
    for kind in ["code_verifier", "refresh_token", "token", "state"] {
        assert!(asked.iter().any(|asked| asked.parameter(kind).is_some()), "no `{kind}` was sent");
    }
    let printed = printed.text();
    // The messages were logged, and so was what went on.
    for line in ["tools/call", "logged in", "refreshed the tokens", "failed to introspect a token"] {
        assert!(printed.contains(line), "no `{line}`: {printed}");
    }
    for secret in found.iter().filter(|secret| !secret.is_empty()) {
        let line = printed.lines().find(|line| line.contains(&**secret));
        assert!(line.is_none(), "`{secret}` was logged: {line:?}");
    }
}
