use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_oauth::client::{Assertion, IdentityProvider, OAuth, Registered};

use crate::world::World;

#[tokio::test]
async fn a_program_is_let_in_by_its_secret() {
    let world = World::new();
    let oauth = OAuth::machine(Registered::new("bot").secret("s3cret")).web(world.clone());
    let server = world.connect(&oauth).await.unwrap();
    let secret = STANDARD.encode("bot:s3cret");
    let asked = format!("token at as.test by Basic {secret}: client_credentials");
    assert_eq!(world.log()[3..], [asked.clone(), "server/discover with access-1".into()]);
    // What it was given to refresh with is used, and without it another is asked for.
    world.change(|state| {
        state.tokens.clear();
        state.refresh.clear();
    });
    server.call_tool("t", ()).await.unwrap();
    assert!(world.log().contains(&asked));
}

#[tokio::test]
async fn a_secret_is_for_the_issuer_that_it_is_of() {
    let world = World::new();
    let client = Registered::new("bot").secret("s3cret").issuer("https://good.test");
    let error = world.connect(&OAuth::machine(client).web(world.clone())).await.unwrap_err().to_string();
    assert!(error.contains("registered with `https://good.test`"), "{error}");
    assert!(!world.log().iter().any(|line| line.starts_with("token")));
}

#[tokio::test]
async fn a_workload_shows_what_its_platform_says_about_it() {
    let world = World::new();
    let oauth = OAuth::workload(Assertion::fixed("platform.jwt")).web(world.clone());
    world.connect(&oauth).await.unwrap();
    assert_eq!(world.log()[3], "token at as.test by -: jwt-bearer");
}

#[tokio::test]
async fn an_identity_provider_agrees_for_its_users() {
    let world = World::new();
    let provider =
        IdentityProvider::new("https://idp.test/token", Registered::new("at-idp"), Assertion::fixed("id"));
    let oauth = OAuth::enterprise(Registered::new("app"), provider).web(world.clone());
    world.connect(&oauth).await.unwrap();
    let log = world.log();
    assert_eq!(
        log[3..5],
        ["token at idp.test by at-idp: token-exchange", "token at as.test by app: jwt-bearer"]
    );
}
