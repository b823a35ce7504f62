//! The check of tokens changes.

use pintle::{
    Client,
    client::{Mode, http::Http},
};
use pintle_oauth::testing::{AuthorizationServer, Claims};
use serde_json::json;

use crate::{
    gateway::connect,
    support::{HttpServing, free_address::free_address, machine::Machine, pintle},
};

#[tokio::test(flavor = "multi_thread")]
async fn tokens_need_the_scopes_that_the_file_has_at_the_moment_and_sessions_stay() {
    let login = AuthorizationServer::listen().await.unwrap();
    let machine = Machine::new("gateway-reloaded-auth");
    let free = free_address().to_string();
    let file = |more: &str| {
        let issuer = login.issuer();
        format!(
            "[auth]\nissuer = \"{issuer}\"\nurl = \"http://{free}\"\n{more}\n[targets.one]\nserver = \"demo\"\n"
        )
    };
    machine.write("team.toml", &file("scopes = [\"read\"]"));
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", &free]).current_dir(machine.path(""));
    let gateway = HttpServing::of(command);
    let token = |scopes: &str| {
        let claims = Claims::new(format!("http://{free}/mcp")).subject("ann");
        login.token(&claims.scopes(scopes.split(' ')))
    };
    let both = connect(&gateway.url, &token("read write"), Mode::Legacy).await;
    let tide = json!({"port": "bergen", "hour": 4});
    both.call_tool("one_tide", tide.clone()).await.unwrap();
    let refused = async || {
        let http = Http::new(&gateway.url).unwrap().bearer(token("read")).unwrap();
        Client::new("host", "1.0.0").connect(http).await.is_err()
    };
    assert!(!refused().await);
    machine.write("team.toml", &file("scopes = [\"write\"]"));
    gateway.printed("has changed, and is in use now").await;
    assert!(refused().await);
    both.call_tool("one_tide", tide.clone()).await.unwrap();
    // Other names of principals need a new start.
    machine.write("team.toml", &file("scopes = [\"read\"]\nprincipal = \"email\""));
    let later = "`auth` has changed, which takes effect when the gateway is started again";
    gateway.printed(later).await;
    assert!(refused().await);
    // Also after another change, with the names of the one before.
    machine.write("team.toml", &file("principal = \"email\""));
    gateway.printed_times(later, 2).await;
    assert!(refused().await);
    both.call_tool("one_tide", tide).await.unwrap();
}
