//! The client of tests, with a login.

use pintle::{
    Client, Server,
    client::{Answer, http::Http},
    proto::http::Guard,
    server::{Cx, ToolError, tool},
};
use pintle_oauth::{
    client::OAuth,
    server::{Jwt, Principal, Protected},
    testing::{AuthorizationServer, Hosts, User},
};
use pintle_testing::TestClient;
use serde_json::json;
use tower_layer::Layer;

async fn wipe(cx: Cx, who: Principal) -> Result<String, ToolError> {
    let sure = cx.elicit::<()>("sure", "Wipe the disk?").await?.accepted().is_some();
    Ok(format!("{}: {sure}", who.subject()))
}

#[tokio::test(start_paused = true)]
async fn a_test_client_logs_in_and_answers_by_key_in_both_eras() {
    let login = AuthorizationServer::new("https://login.test");
    login.subject("alice");
    let hosts = Hosts::new().host(login.issuer(), login.clone());
    let server = Server::new("disk", "1").tool(tool("wipe", wipe));
    let http = server.http().unwrap().guard(Guard::hosts(["disk.test"]));
    let tokens = Jwt::new(login.issuer()).unwrap().web(hosts.clone());
    let protected = Protected::new("https://disk.test/mcp", tokens).unwrap();
    let hosts = hosts.host("https://disk.test", protected.layer(http));

    let client = TestClient::of(Client::new("tests", "1")).answer("sure", Answer::accept(json!({})));
    let transport = async || {
        let oauth = OAuth::login("Tests", User::on(hosts.clone())).web(hosts.clone());
        Http::new("https://disk.test/mcp").unwrap().client(hosts.clone()).auth(oauth)
    };
    client
        .both_eras_over(transport, async |client| {
            assert_eq!(client.tool("wipe", ()).await.text(), "alice: true");
        })
        .await;
}
