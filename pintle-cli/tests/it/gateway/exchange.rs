//! Tokens of clients are exchanged for tokens of a target, and results that are too long are cut.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{Server, client::Mode, server::tool};
use pintle_oauth::{
    server::{CallerToken, Jwt, Principal, Protected},
    testing::{AuthorizationServer, Claims, Fault},
};

use super::{connect, names};
use crate::support::{HttpServing, free_address::free_address, machine::Machine, pintle};

/// The tokens that a server got, with their subjects.
type Received = Arc<Mutex<Vec<(String, String)>>>;

/// A server that accepts tokens for itself only, and records them.
async fn target(login: &AuthorizationServer) -> (String, Received, pintle::server::http::HttpServing) {
    let (address, received) = (free_address().to_string(), Received::default());
    let recorded = received.clone();
    let whoami = tool("whoami", move |cx: pintle::server::Cx, who: Principal| {
        let recorded = recorded.clone();
        async move {
            let token = cx.extensions().get::<CallerToken>().unwrap().secret().reveal().to_owned();
            recorded.lock().unwrap().push((who.subject().to_owned(), token));
            who.subject().to_owned()
        }
    });
    let url = format!("http://{address}/mcp");
    let protected = Protected::new(&*url, Jwt::new(login.issuer()).unwrap()).unwrap().keep_token();
    let server = Server::new("crm", "0").tool(whoami);
    let serving = protected.serve(&server, address).await.unwrap();
    (url, received, serving)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_principal_has_its_own_token_at_the_target_and_none_is_forwarded() {
    let login = AuthorizationServer::listen().await.unwrap();
    login.add_client_with_secret("gateway", "s3cret");
    let (url, received, _serving) = target(&login).await;
    let machine = Machine::new("gateway-exchange");
    let (address, issuer) = (free_address().to_string(), login.issuer().to_owned());
    machine.write(
        "team.toml",
        &format!(
            r#"
            [auth]
            issuer = "{issuer}"
            url = "http://{address}"

            [targets.crm]
            url = "{url}"

            [targets.crm.exchange]
            token_url = "{}/token"
            client_id = "gateway"
            client_secret = {{ env = "GATEWAY_SECRET" }}
            "#,
            issuer.trim_end_matches('/')
        ),
    );
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", &address]).current_dir(machine.path(""));
    command.env("GATEWAY_SECRET", "s3cret");
    let gateway = HttpServing::of(command);
    let token = |subject: &str| login.token(&Claims::new(format!("http://{address}/mcp")).subject(subject));
    let (ann, bob) = (token("ann"), token("bob"));
    for mode in [Mode::Legacy, Mode::Modern] {
        for (subject, token) in [("ann", &ann), ("bob", &bob), ("ann", &ann)] {
            let client = connect(&gateway.url, token, mode).await;
            assert_eq!(names(&client, |names| !names.is_empty()).await, ["crm_whoami"]);
            assert_eq!(client.call_tool("crm_whoami", ()).await.unwrap().text(), subject);
        }
    }
    let received = received.lock().unwrap().clone();
    assert_eq!(received.len(), 6);
    for (subject, token) in &received {
        assert!(*token != ann && *token != bob, "a token of a client was forwarded");
        let claims = login.claims_of(token).unwrap();
        assert_eq!((&claims["sub"], &claims["aud"]), (&subject.as_str().into(), &url.as_str().into()));
    }
    // A token that the authorization server does not exchange any more is refused with the reason.
    login.revoke_access();
    let carol = token("carol");
    login.revoke_access();
    let client = connect(&gateway.url, &carol, Mode::Modern).await;
    let error = client.call_tool("crm_whoami", ()).await.unwrap_err().to_string();
    assert!(error.contains("the backend `crm` cannot be used") && error.contains("refused"), "{error}");
    let other = client.call_tool("other_tool", ()).await.unwrap_err().to_string();
    assert!(other.contains("no such tool"), "{other}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_principal_watches_is_watched_with_its_own_token() {
    let login = AuthorizationServer::listen().await.unwrap();
    login.add_client_with_secret("gateway", "s3cret");
    let (address, behind) = (free_address().to_string(), free_address().to_string());
    let (watching, mut watched) = tokio::sync::mpsc::channel(9);
    let url = format!("http://{behind}/mcp");
    let mail = Server::new("mail", "0").may_change();
    let mail = mail.resource(pintle::server::resource("mail://inbox", "inbox", || async { "" }));
    let mail = mail.layer(&pintle::server::around(move |cx: pintle::server::Cx, next| {
        let watching = watching.clone();
        async move {
            if cx.params().as_str().contains("mail://inbox") {
                let who = if format!("{:?}", cx.identity()).contains("ann") { "ann" } else { "bob" };
                watching.send((who, cx.method().to_owned())).await.unwrap();
            }
            next.run(cx).await
        }
    }));
    let protected = Protected::new(&*url, Jwt::new(login.issuer()).unwrap()).unwrap();
    let _serving = protected.serve(&mail, behind).await.unwrap();
    let machine = Machine::new("gateway-exchange-watch");
    let issuer = login.issuer().trim_end_matches('/').to_owned();
    machine.write(
        "team.toml",
        &format!(
            "[auth]\nissuer = \"{issuer}\"\nurl = \"http://{address}\"\n[targets.mail]\nurl = \"{url}\"\n[targets.mail.exchange]\n\
             token_url = \"{issuer}/token\"\nclient_id = \"gateway\"\nclient_secret = {{ env = \"GATEWAY_SECRET\" }}\n"
        ),
    );
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", &address]).current_dir(machine.path(""));
    command.env("GATEWAY_SECRET", "s3cret");
    let gateway = HttpServing::of(command);
    let token = |subject: &str| login.token(&Claims::new(format!("http://{address}/mcp")).subject(subject));
    let bob = connect(&gateway.url, &token("bob"), Mode::Modern).await;
    assert_eq!(bob.resources().await.unwrap().len(), 1);
    let ann = connect(&gateway.url, &token("ann"), Mode::Modern).await;
    ann.subscribe("mail://inbox").await.unwrap();
    // What bob does afterwards arrives afterwards.
    bob.read_resource("mail://inbox").await.unwrap();
    let mut seen = Vec::new();
    while let Some((who, method)) = watched.recv().await {
        seen.push(format!("{who} {method}"));
        if method == "resources/read" {
            break;
        }
    }
    assert_eq!(seen, ["ann subscriptions/listen", "bob resources/read"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_that_ends_or_is_refused_is_exchanged_again_for_what_the_file_says() {
    let login = AuthorizationServer::listen().await.unwrap();
    login.add_client_with_secret("gateway", "s3cret");
    let (url, _, _serving) = target(&login).await;
    let machine = Machine::new("gateway-exchange-again");
    let (address, issuer) = (free_address().to_string(), login.issuer().to_owned());
    let exchange = |name: &str, more: &str| {
        let token_url = format!("{}/token", issuer.trim_end_matches('/'));
        format!(
            "[targets.{name}]\nurl = \"{url}\"\n[targets.{name}.exchange]\ntoken_url = \"{token_url}\"\n\
             client_id = \"gateway\"\nclient_secret = {{ env = \"GATEWAY_SECRET\" }}\n{more}\n"
        )
    };
    let auth = format!("[auth]\nissuer = \"{issuer}\"\nurl = \"http://{address}\"\n");
    let targets =
        exchange("crm", "scopes = [\"crm:read\"]") + &exchange("ledger", "audience = \"urn:ledger\"");
    machine.write("team.toml", &format!("{auth}{targets}"));
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", &address]).current_dir(machine.path(""));
    command.env("GATEWAY_SECRET", "s3cret");
    let gateway = HttpServing::of(command);
    let ann = login.token(&Claims::new(format!("http://{address}/mcp")).subject("ann"));
    // A token is not used in its last ten seconds.
    login.lifetime(Duration::from_secs(10));
    let client = connect(&gateway.url, &ann, Mode::Modern).await;
    let whoami = async || client.call_tool("crm_whoami", ()).await.map(|result| result.text());
    // Those since the last time.
    let exchanges = || {
        login.log().into_iter().filter(|asked| asked.as_str().contains("token-exchange")).collect::<Vec<_>>()
    };
    assert_eq!(whoami().await.unwrap(), "ann");
    let mut all = exchanges();
    assert_eq!((whoami().await.unwrap(), whoami().await.unwrap()), ("ann".into(), "ann".into()));
    let again = exchanges();
    assert!(again.len() >= 2, "{again:?}");
    all.extend(again);
    // One that the target refuses is not used again, however long it lasts.
    login.lifetime(Duration::from_secs(3600));
    login.fault_times(1, Fault::claim("aud", "https://elsewhere.example/mcp"));
    whoami().await.unwrap_err();
    assert_eq!(whoami().await.unwrap(), "ann");

    client.call_tool("ledger_whoami", ()).await.unwrap_err();
    all.extend(exchanges());
    let (of_ledger, of_crm): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|asked| asked.parameter("audience").is_some());
    assert!(!of_ledger.is_empty() && !of_crm.is_empty());
    for asked in of_crm {
        assert_eq!((asked.parameter("resource"), asked.parameter("scope")), (Some(&*url), Some("crm:read")));
    }
    for asked in of_ledger {
        let sent = ["audience", "resource", "scope"].map(|name| asked.parameter(name));
        assert_eq!(sent, [Some("urn:ledger"), None, None]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_result_that_is_too_long_is_cut_and_its_caller_can_read_the_rest() {
    let long = "wave ".repeat(10_000);
    let text = long.clone();
    let server = Server::new("sea", "0").tool(tool("waves", move || {
        let text = text.clone();
        async move { text }
    }));
    let serving = server.serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-results");
    let file = format!(
        "[targets.sea]\nurl = \"http://{}/mcp\"\nmax_result_bytes = 1000\n[servers.brief]\nmax_result_bytes = 100\n",
        serving.address()
    );
    machine.write("team.toml", &file);
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0", "--bearer-env", "ANN"]);
    command.args(["--bearer-env", "BOB"]).env("BOB", "bob-token");
    command.current_dir(machine.path("")).env("ANN", "ann-token");
    let gateway = HttpServing::of(command);
    let client = connect(&gateway.url, "ann-token", Mode::Modern).await;
    names(&client, |names| !names.is_empty()).await;
    let cut = client.call_tool("sea_waves", ()).await.unwrap();
    assert!(cut.text().len() < 2_000 && cut.text().starts_with("wave wave"), "{}", cut.text());
    let json = serde_json::to_value(&cut).unwrap();
    let link =
        json["content"].as_array().unwrap().iter().find(|block| block["type"] == "resource_link").unwrap();
    let read = client.read_resource(link["uri"].as_str().unwrap()).await.unwrap();
    assert!(serde_json::to_string(&read).unwrap().contains(&long));
    let bob = connect(&gateway.url, "bob-token", Mode::Modern).await;
    bob.read_resource(link["uri"].as_str().unwrap()).await.unwrap_err();
    // A virtual server has a limit of its own.
    let brief = connect(&format!("{}/brief", gateway.url), "ann-token", Mode::Modern).await;
    let cut = brief.call_tool("sea_waves", ()).await.unwrap().text();
    assert!(cut.starts_with("wave") && cut.matches("wave ").count() < 20, "{cut}");
}
