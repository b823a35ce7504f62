use pintle_oauth::{
    client::{Assertion, IdentityProvider, OAuth, Registered},
    testing::AuthorizationServer,
};

use crate::world::World;

#[tokio::test]
async fn a_program_is_let_in_by_its_secret() {
    let world = World::new();
    world.login.add_client_with_secret("bot", "s3cret");
    let oauth = OAuth::machine(Registered::new("bot").secret("s3cret")).web(world.hosts.clone());
    let server = world.connect(&oauth).await.unwrap();
    let asked = "token at as.test by bot: client_credentials";
    assert_eq!(world.log()[3..], [asked, "server/discover with access-1"]);
    world.login.revoke_access();
    server.call_tool("t", ()).await.unwrap();
    assert!(world.log().iter().any(|line| line == asked));
}

#[tokio::test]
async fn a_secret_is_for_the_issuer_that_it_is_of() {
    let world = World::new();
    let client = Registered::new("bot").secret("s3cret").issuer("https://good.test");
    let error =
        world.connect(&OAuth::machine(client).web(world.hosts.clone())).await.unwrap_err().to_string();
    assert!(error.contains("registered with `https://good.test`"), "{error}");
    assert!(!world.log().iter().any(|line| line.starts_with("token")));
}

#[tokio::test]
async fn a_workload_shows_what_its_platform_says_about_it() {
    let world = World::new();
    world.login.trust("platform.jwt");
    let oauth = OAuth::workload(Assertion::fixed("platform.jwt")).web(world.hosts.clone());
    world.connect(&oauth).await.unwrap();
    assert_eq!(world.log()[3], "token at as.test by -: jwt-bearer");
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
    let provider =
        IdentityProvider::new("https://idp.test/token", Registered::new("at-idp"), Assertion::fixed("id"));
    let oauth = OAuth::enterprise(Registered::new("app"), provider).web(world.hosts.clone());
    world.connect(&oauth).await.unwrap();
    let log = world.log();
    assert_eq!(
        log[3..5],
        ["token at idp.test by at-idp: token-exchange", "token at as.test by app: jwt-bearer"]
    );
}
