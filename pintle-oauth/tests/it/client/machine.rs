use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_oauth::{
    client::{Assertion, IdentityProvider, MemoryStore, OAuth, Registered},
    testing::{AuthorizationServer, Endpoint, Fault},
};
use ring::{rand::SystemRandom, signature::EcdsaKeyPair};

use crate::support::world::World;

/// A new P-256 key.
fn pem() -> String {
    let by = &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(by, &SystemRandom::new()).unwrap();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(key))
}

#[tokio::test]
async fn a_program_is_let_in_by_its_secret() {
    let world = World::new();
    world.login.add_client_with_secret("bot", "s3cret");
    let oauth =
        OAuth::machine(Registered::new("https://as.test", "bot").secret("s3cret")).web(world.hosts.clone());
    let server = world.connect(&oauth).await.unwrap();
    let asked = "token at as.test by bot: client_credentials";
    assert_eq!(world.log()[3..], [asked, "server/discover with access-1"]);
    world.login.revoke_access();
    server.call_tool("t", ()).await.unwrap();
    assert!(world.log().iter().any(|line| line == asked));
}

#[tokio::test]
async fn a_stale_token_of_a_program_is_replaced_before_it_is_sent() {
    let world = World::new();
    world.login.add_client_with_secret("bot", "s3cret");
    world.login.fault(Fault::answer(Endpoint::Token, "expires_in", 0));
    let oauth =
        OAuth::machine(Registered::new("https://as.test", "bot").secret("s3cret")).web(world.hosts.clone());
    let server = world.connect(&oauth).await.unwrap();
    world.login.clear_faults();
    world.log();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(log[0], "token at as.test by bot: client_credentials");
    assert_eq!(log.len(), 2, "{log:#?}");
}

#[tokio::test]
async fn a_secret_is_for_the_issuer_that_it_is_of() {
    let world = World::new();
    let client = Registered::new("https://good.test", "bot").secret("s3cret");
    let error =
        world.connect(&OAuth::machine(client).web(world.hosts.clone())).await.unwrap_err().to_string();
    assert!(error.contains("registered with `https://good.test`"), "{error}");
    assert!(!world.log().iter().any(|line| line.starts_with("token")));
}

#[tokio::test]
async fn nothing_that_proves_who_is_asking_goes_to_whom_a_server_names() {
    let pem = pem();
    let provider = || {
        let at_idp = Registered::new("https://idp.test", "at-idp");
        IdentityProvider::new("https://idp.test/token", at_idp, Assertion::fixed("id"))
    };
    let good = || Registered::new("https://good.test", "bot");
    for oauth in [
        OAuth::workload("https://good.test", Assertion::fixed("platform.jwt")),
        OAuth::machine(good().secret("s3cret")),
        OAuth::machine(good().key(&pem).unwrap()),
        OAuth::enterprise(good(), provider()),
    ] {
        let world = World::new();
        let error = world.connect(&oauth.web(world.hosts.clone())).await.unwrap_err().to_string();
        assert!(
            error.contains("`https://good.test`, and the server wants tokens of `https://as.test`"),
            "{error}"
        );
        let asked =
            ["server/discover with nothing", "GET https://mcp.test/.well-known/oauth-protected-resource/mcp"];
        assert_eq!(world.log(), asked);
    }
}

#[tokio::test]
async fn a_workload_shows_what_its_platform_says_about_it() {
    let world = World::new();
    world.login.trust("platform.jwt");
    let oauth = OAuth::workload("https://as.test", Assertion::fixed("platform.jwt")).web(world.hosts.clone());
    world.connect(&oauth).await.unwrap();
    assert_eq!(world.log()[3], "token at as.test by -: jwt-bearer");
}

#[tokio::test]
async fn the_next_run_of_a_workload_uses_the_stored_token() {
    let world = World::new();
    world.login.trust("platform.jwt");
    let store = Arc::new(MemoryStore::new());
    let oauth = || {
        OAuth::workload("https://as.test", Assertion::fixed("platform.jwt"))
            .web(world.hosts.clone())
            .store(store.clone())
    };
    world.connect(&oauth()).await.unwrap();
    world.log();
    world.connect(&oauth()).await.unwrap();
    let log = world.log();
    assert!(!log.iter().any(|line| line.starts_with("token")), "{log:#?}");
}

#[tokio::test]
async fn an_identity_provider_agrees_for_its_users() {
    let world = World::new();
    let idp = AuthorizationServer::new("https://idp.test");
    idp.add_client("at-idp");
    idp.trust("id");
    world.also(&idp);
    world.login.add_client("app");
    world.login.trust("id-jag-1");
    let at_idp = Registered::new("https://idp.test", "at-idp");
    let provider = IdentityProvider::new("https://idp.test/token", at_idp, Assertion::fixed("id"));
    let oauth =
        OAuth::enterprise(Registered::new("https://as.test", "app"), provider).web(world.hosts.clone());
    world.connect(&oauth).await.unwrap();
    let log = world.log();
    assert_eq!(
        log[3..5],
        ["token at idp.test by at-idp: token-exchange", "token at as.test by app: jwt-bearer"]
    );
}

#[tokio::test]
async fn an_identity_provider_may_be_in_a_network_that_the_server_is_not_in() {
    let world = World::new();
    let idp = AuthorizationServer::new("https://10.0.0.7");
    idp.add_client("at-idp");
    idp.trust("id");
    world.also(&idp);
    world.login.add_client("app");
    world.login.trust("id-jag-1");
    let at_idp = Registered::new("https://10.0.0.7", "at-idp");
    let provider = IdentityProvider::new("https://10.0.0.7/token", at_idp, Assertion::fixed("id"));
    let oauth =
        OAuth::enterprise(Registered::new("https://as.test", "app"), provider).web(world.hosts.clone());
    world.connect(&oauth).await.unwrap();
}

/// Each way of authorization is declared by the name of its extension, and a login by none.
#[tokio::test]
async fn a_client_declares_the_extensions_of_its_authorization_in_both_eras() {
    use pintle::{
        Client, Server,
        client::Mode,
        server::{Cx, tool},
    };
    let bot = || Registered::new("https://as.test", "bot").secret("s3cret");
    let provider = IdentityProvider::new("https://idp.test/token", bot(), Assertion::fixed("id"));
    let wanted = "io.modelcontextprotocol/";
    for (oauth, names) in [
        (OAuth::machine(bot()), vec!["oauth-client-credentials"]),
        (OAuth::enterprise(bot(), provider), vec!["enterprise-managed-authorization"]),
        (OAuth::workload("https://as.test", Assertion::fixed("jwt")), vec!["auth/wif"]),
        (OAuth::machine(bot()).dpop(), vec!["oauth-client-credentials", "auth/dpop"]),
        (OAuth::device("App", |_| {}).dpop(), vec!["auth/dpop"]),
        (OAuth::device("App", |_| {}), vec![]),
    ] {
        let names: Vec<_> = names.iter().map(|name| format!("{wanted}{name}")).collect();
        assert_eq!(oauth.extensions(), names);
        let declared = tool("declared", |cx: Cx| async move {
            let declared = cx.peer().capabilities.extensions.clone().unwrap_or_default();
            declared.keys().cloned().collect::<Vec<_>>().join(" ")
        });
        let server = Server::new("s", "1").tool(declared);
        for mode in [Mode::Legacy, Mode::Modern] {
            let client = oauth.declare(Client::new("c", "1").mode(mode));
            let connection = client.connect(server.in_process().unwrap()).await.unwrap();
            assert_eq!(connection.call_tool("declared", ()).await.unwrap().text(), names.join(" "));
        }
    }
}
