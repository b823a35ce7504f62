//! A target that the user of the gateway logs in to.

use pintle::{
    Client,
    client::{Mode, http::Http},
};

use super::names;
use crate::support::{
    HttpServing,
    machine::Machine,
    pintle,
    protected::{ProtectedServer, browse},
};

fn start(machine: &Machine, url: &str, token: bool) -> HttpServing {
    machine.write("team.toml", &format!("[targets.notes]\nurl = \"{url}\"\nlogin = true\n"));
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    command.env("PINTLE_STATE_DIR", machine.path("state"));
    if token {
        command.args(["--bearer-env", "ANN"]).env("ANN", "ann-token");
    }
    HttpServing::of(command)
}

/// Calls a tool when the gateway has tried to connect.
async fn error_of_call(gateway: &HttpServing, client: &pintle::Connection) -> String {
    gateway.printed("`notes` cannot be connected").await;
    client.call_tool("notes_whoami", ()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn calls_fail_with_the_login_page_until_the_user_has_logged_in() {
    let server = ProtectedServer::start();
    let machine = Machine::new("gateway-login");
    let gateway = start(&machine, &server.url, false);
    let client = Client::new("host", "1.0.0").mode(Mode::Modern);
    let client = client.connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    let error = error_of_call(&gateway, &client).await;
    assert!(error.contains("requires a login: open http"), "{error}");
    let page = error.split("open ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    tokio::task::spawn_blocking(move || browse(&page, "")).await.unwrap();
    assert_eq!(names(&client, |names| !names.is_empty()).await, ["notes_whoami"]);
    assert_eq!(client.call_tool("notes_whoami", ()).await.unwrap().text(), "alice");
}

#[tokio::test]
async fn nobody_logs_in_for_several_principals() {
    let server = ProtectedServer::start();
    let machine = Machine::new("gateway-login-many");
    let gateway = start(&machine, &server.url, true);
    let http = Http::new(&gateway.url).unwrap().bearer("ann-token").unwrap();
    let client = Client::new("host", "1.0.0").mode(Mode::Modern).connect(http).await.unwrap();
    let error = error_of_call(&gateway, &client).await;
    assert!(error.contains("`login` is for a gateway of one user"), "{error}");
}
