//! Logins that are revoked at the authorization server.

use pintle_oauth::{
    client::{FileStore, OAuth, Registered, StoredLogin},
    testing::{Endpoint, Fault},
};

use crate::support::{token_file::TokenFolder, world::World};

/// Logs in and returns the login that was stored.
async fn logged_in(world: &World, oauth: &OAuth, file: &FileStore) -> StoredLogin {
    world.connect(oauth).await.unwrap().close().await;
    world.login.log();
    file.logins().await.unwrap().remove(0)
}

/// Returns what was asked of the revocation endpoint: the kind of token, by whom, and the outcome.
fn revocations(world: &World) -> Vec<String> {
    let asked = world.login.log().into_iter().filter(|asked| asked.as_str().contains("/revoke"));
    let line = |kind: &str, client: &str, status: Option<u16>| format!("{kind} by {client}: {status:?}");
    asked
        .map(|asked| {
            let kind = asked.parameter("token_type_hint").unwrap_or("-");
            line(kind, asked.client().unwrap_or("-"), asked.status())
        })
        .collect()
}

#[tokio::test]
async fn the_refresh_token_is_revoked_and_then_the_access_token() {
    let (world, folder) = (World::new(), TokenFolder::new());
    let file = folder.file();
    let oauth = world.login().store(file.clone());
    let login = logged_in(&world, &oauth, &file).await;
    assert_eq!(world.login.issued().len(), 1);
    // In another process, which knows only what is stored.
    world.login().store(folder.file()).revoke(&login).await.unwrap();
    assert_eq!(
        revocations(&world),
        ["refresh_token by client-1: Some(200)", "access_token by client-1: Some(200)"]
    );
    assert!(world.login.issued().is_empty());
    // Whoever still has the tokens is refused, and a new login is needed.
    world.connect(&world.login().store(file.clone())).await.unwrap();
    let log = world.login.log();
    assert!(log.iter().any(|asked| asked.as_str().contains("/authorize")), "{log:#?}");
    // Twice is once: there is nothing to revoke after it was forgotten.
    let login = file.logins().await.unwrap().remove(0);
    assert!(file.forget(&login).await.unwrap());
    oauth.revoke(&login).await.unwrap();
    assert!(revocations(&world).is_empty());
}

#[tokio::test]
async fn a_failure_has_its_reason_and_the_other_token_is_revoked_anyway() {
    let (world, folder) = (World::new(), TokenFolder::new());
    let file = folder.file();
    let oauth = world.login().store(file.clone());
    let login = logged_in(&world, &oauth, &file).await;
    let both = ["refresh_token by client-1", "access_token by client-1"];
    for (fault, reason, status) in [
        (Fault::refused(Endpoint::Revoke, "unsupported_token_type"), "unsupported_token_type", "Some(400)"),
        (Fault::Status(Endpoint::Revoke, 503), "status 503", "Some(503)"),
        (Fault::CutOff(Endpoint::Revoke), "https://as.test/revoke", "None"),
    ] {
        world.login.fault_times(1, fault);
        let error = oauth.revoke(&login).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(
            revocations(&world),
            [format!("{}: {status}", both[0]), format!("{}: Some(200)", both[1])]
        );
    }
}

#[tokio::test]
async fn tokens_are_sent_nowhere_if_the_endpoint_is_missing_or_in_another_network() {
    let (world, folder) = (World::new(), TokenFolder::new());
    let file = folder.file();
    let oauth = world.login().store(file.clone());
    let login = logged_in(&world, &oauth, &file).await;
    for (endpoint, reason) in [
        (serde_json::Value::Null, "does not offer to revoke tokens"),
        ("http://as.test/revoke".into(), "it is not encrypted"),
        ("https://10.0.0.1/revoke".into(), "private network"),
        ("https://127.0.0.1/revoke".into(), "private network"),
    ] {
        world.login.say("revocation_endpoint", endpoint);
        let error = oauth.revoke(&login).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(revocations(&world).is_empty());
    }
    // Nor to a server that took the place of the issuer.
    world.login.say("issuer", "https://evil.test");
    let error = oauth.revoke(&login).await.unwrap_err().to_string();
    assert!(error.contains("https://evil.test") && revocations(&world).is_empty(), "{error}");
}

#[tokio::test]
async fn a_client_with_a_secret_proves_it() {
    let (world, folder) = (World::new(), TokenFolder::new());
    let file = folder.file();
    world.login.add_client_with_secret("bot", "s3cret");
    let machine = |secret: &str| {
        let client = Registered::new("https://as.test", "bot").secret(secret.to_owned());
        OAuth::machine(client).web(world.hosts.clone()).store(file.clone())
    };
    let login = logged_in(&world, &machine("s3cret"), &file).await;
    let refused = machine("wrong").revoke(&login).await.unwrap_err().to_string();
    assert!(refused.contains("refused to revoke the access token: `invalid_client`"), "{refused}");
    assert_eq!(revocations(&world), ["access_token by bot: Some(401)"]);
    machine("s3cret").revoke(&login).await.unwrap();
    assert_eq!(revocations(&world), ["access_token by bot: Some(200)"]);
    assert!(world.login.issued().is_empty());
}
