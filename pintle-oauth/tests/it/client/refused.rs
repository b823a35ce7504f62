use std::future::{Future, ready};

use pintle::Result;
use pintle_oauth::{
    client::{Consent, OAuth, Visit},
    testing::{AuthorizationServer, Endpoint, Fault},
};
use serde_json::{Value, json};

use crate::support::world::{SERVER, World};

/// How connecting fails in a world with this fault, and what was asked until then.
async fn refused(fault: impl FnOnce(&World)) -> (String, Vec<String>) {
    let world = World::new();
    fault(&world);
    let error = world.connect(&world.login()).await.unwrap_err().to_string();
    let log = world.log();
    assert!(!log.iter().any(|line| line.starts_with("token")), "{log:#?}");
    assert!(!error.contains("code-"), "{error}");
    (error, log)
}

#[tokio::test]
async fn an_answer_from_somebody_else_is_not_used() {
    let (error, _) = refused(|world| world.login.fault(Fault::redirect("iss", "https://evil.test"))).await;
    assert!(error.contains("not from the authorization server `https://as.test`"), "{error}");
    let (error, _) = refused(|world| world.login.fault(Fault::redirect_without("iss"))).await;
    assert!(
        error.contains(
            "has no `iss`, which the metadata of the authorization server `https://as.test` promises"
        ),
        "{error}"
    );
    let (error, _) = refused(|world| world.login.fault(Fault::redirect("state", "guessed"))).await;
    assert!(error.contains("another `state`"), "{error}");
    let (error, _) = refused(|world| {
        for (name, lie) in [("iss", "https://evil.test"), ("error", "x"), ("error_description", "lies")] {
            world.login.fault(Fault::redirect(name, lie));
        }
    })
    .await;
    assert!(!error.contains("lies"), "{error}");
}

/// A hostile issuer that names the login page of an honest one, which does not name itself in its redirects.
#[tokio::test]
async fn a_code_of_an_honest_issuer_is_not_sent_to_one_that_names_its_login_page() {
    for has_metadata in [true, false] {
        let (error, log) = refused(|world| {
            let evil = AuthorizationServer::new("https://evil.test");
            evil.say("authorization_endpoint", "https://as.test/authorize");
            evil.say("registration_endpoint", "https://as.test/register");
            evil.say("authorization_response_iss_parameter_supported", false);
            world.also(&evil);
            world.login.fault(Fault::redirect_without("iss"));
            if !has_metadata {
                for endpoint in [Endpoint::Metadata, Endpoint::OpenidConfiguration] {
                    world.login.fault(Fault::Status(endpoint, 404));
                }
            }
            world.change(|state| state.resource["authorization_servers"] = json!(["https://evil.test"]));
        })
        .await;
        assert!(
            error.contains("the `authorization_endpoint` of the authorization server `https://evil.test` is"),
            "{error}"
        );
        assert!(
            !log.iter().any(|line| line.starts_with("login") || line.starts_with("register")),
            "{log:#?}"
        );
    }
}

#[tokio::test]
async fn metadata_that_does_not_fit_is_not_used() {
    let (error, log) =
        refused(|world| world.change(|state| state.resource["resource"] = json!("https://evil.test/mcp")))
            .await;
    assert!(error.contains("is about `https://evil.test/mcp`"), "{error}");
    assert_eq!(log.len(), 2, "{log:#?}");
    let (error, _) = refused(|world| world.login.fault(Fault::metadata("issuer", "https://evil.test"))).await;
    assert!(error.contains("is that of `https://evil.test`"), "{error}");
    let (error, _) = refused(|world| {
        for endpoint in [Endpoint::Metadata, Endpoint::OpenidConfiguration] {
            world.login.fault(Fault::Status(endpoint, 404));
        }
    })
    .await;
    assert!(error.contains("has no metadata"), "{error}");
    let (error, _) =
        refused(|world| world.change(|state| state.resource = json!({"resource": SERVER}))).await;
    assert!(error.contains("has no authorization server"), "{error}");
    let (error, _) = refused(|world| {
        world.change(|state| state.resource = json!({"authorization_servers": ["https://as.test"]}))
    })
    .await;
    assert!(error.contains("is about ``"), "{error}");
}

#[tokio::test]
async fn a_server_without_pkce_is_not_logged_in_to() {
    for methods in [json!(["plain"]), Value::Null] {
        let (error, log) =
            refused(|world| world.login.fault(Fault::metadata("code_challenge_methods_supported", methods)))
                .await;
        assert!(error.contains("does not offer PKCE with `S256`"), "{error}");
        assert!(!log.iter().any(|line| line.starts_with("register")), "{log:#?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_where_metadata_must_not_lead() {
    for issuer in ["http://as.test", "https://127.0.0.1", "https://169.254.169.254", "http://localhost:1"] {
        let (error, log) =
            refused(|world| world.change(|state| state.resource["authorization_servers"] = json!([issuer])))
                .await;
        assert!(error.contains("requests to"), "{error}");
        assert_eq!(log.len(), 2, "{log:#?}");
    }
    let private = Fault::metadata("registration_endpoint", "https://10.0.0.1/r");
    let (error, log) = refused(|world| world.login.fault(private)).await;
    assert!(error.contains("`https://10.0.0.1/r`"), "{error}");
    assert!(!log.iter().any(|line| line.starts_with("register")), "{log:#?}");
    let named = r#"Bearer resource_metadata="http://192.168.0.1/""#;
    let (error, log) = refused(|world| world.change(|state| state.challenge = named.into())).await;
    assert!(error.contains("requests to"), "{error}");
    assert_eq!(log.len(), 1, "{log:#?}");
}

#[tokio::test]
async fn tokens_are_not_asked_for_a_server_that_would_be_told_them_in_the_clear() {
    let world = World::new();
    let error = world.connect_to("http://mcp.test/mcp", &world.login()).await.unwrap_err().to_string();
    assert!(error.contains("it is not encrypted"), "{error}");
    assert_eq!(world.log(), ["server/discover with nothing"]);
}

#[tokio::test]
async fn what_the_authorization_server_reports_is_shown_and_no_secret_is() {
    let world = World::new();
    world.login.fault(Fault::refused(Endpoint::Token, "invalid_target"));
    world.login.fault(Fault::answer(Endpoint::Token, "error_description", "no such\nresource"));
    let error = world.connect(&world.login()).await.unwrap_err().to_string();
    let text = "the authorization server `https://as.test` refused to issue a token: `invalid_target`: no such resource";
    assert!(error.contains(text), "{error}");
    assert!(!error.contains("code-"), "{error}");
}

#[tokio::test]
async fn a_client_that_nobody_registers_is_told_what_to_do() {
    let silent = Fault::metadata("registration_endpoint", Value::Null);
    let (error, _) = refused(|world| world.login.fault(silent)).await;
    assert!(
        error.contains("register a client with its operator and pass it to `OAuth::registered`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_user_who_says_no_is_asked_once_for_ten_calls() {
    let world = World::new();
    let server = std::sync::Arc::new(world.connect(&world.login()).await.unwrap());
    world.login.revoke_access();
    world.login.revoke_refresh();
    world.login.fault(Fault::Denied);
    world.log();
    let call = |_| {
        let server = server.clone();
        tokio::spawn(async move { server.call_tool("t", ()).await.map(drop) })
    };
    for call in (0..10).map(call).collect::<Vec<_>>() {
        let error = call.await.unwrap().unwrap_err().to_string();
        assert!(error.contains("the login was refused: `access_denied`"), "{error}");
    }
    let log = world.log();
    assert_eq!(log.iter().filter(|line| line.starts_with("login")).count(), 1, "{log:#?}");
}

#[tokio::test]
async fn a_code_is_not_sent_back_in_the_clear() {
    struct To(&'static str);
    impl Consent for To {
        type Visit = Self;
        fn begin(&self, _before: Option<&str>) -> impl Future<Output = Result<Self>> + Send {
            ready(Ok(Self(self.0)))
        }
    }
    impl Visit for To {
        fn redirect_uri(&self) -> &str {
            self.0
        }
        fn ask(self, _url: &str) -> impl Future<Output = Result<String>> + Send {
            ready(Ok("state=unknown".into()))
        }
    }
    for (address, expected) in [
        ("http://app.test/callback", "`http://app.test/callback` cannot be a redirect address"),
        ("http://10.0.0.1/callback", "`http://10.0.0.1/callback` cannot be a redirect address"),
        ("https://app.test/callback", "another `state`"),
        ("http://localhost:1/callback", "another `state`"),
        ("test.app:/callback", "another `state`"),
    ] {
        let world = World::new();
        let oauth = OAuth::login("App", To(address)).web(world.hosts.clone());
        let error = world.connect(&oauth).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{address}: {error}");
        let registered = world.log().iter().any(|line| line.starts_with("register"));
        assert_eq!(registered, expected.contains("state"), "{address}");
    }
}
