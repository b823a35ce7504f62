use std::{fmt::Debug, future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use pintle::{
    Client, Connection,
    client::{
        Mode,
        http::{Http, Requests},
    },
};
use pintle_oauth::client::{DeviceCode, OAuth, Registered};

use super::{
    browser::User,
    kept::Kept,
    provider::Provider,
    server::{Kind, Serving},
};
use crate::Wrong;

/// One thing that has to work.
#[expect(clippy::exhaustive_structs, reason = "not published")]
#[derive(Debug)]
pub struct Case {
    /// For people.
    pub name: &'static str,
    /// Does it, and says in short what came of it if that was right.
    pub run: Run,
}

/// Does something with an authorization server.
type Run = for<'a> fn(&'a Provider) -> Pin<Box<dyn Future<Output = Result<String, Wrong>> + 'a>>;

/// All cases. What is behind the last one would meet another key.
pub const CASES: &[Case] = &[
    Case { name: "login in a session", run: |provider| Box::pin(logs_in(provider, Mode::Legacy)) },
    Case { name: "login without a session", run: |provider| Box::pin(logs_in(provider, Mode::Modern)) },
    Case { name: "login that the user refuses", run: |provider| Box::pin(refused(provider)) },
    Case { name: "login of a client with a document", run: |provider| Box::pin(documented(provider)) },
    Case { name: "login on another device", run: |provider| Box::pin(device(provider)) },
    Case { name: "expired token", run: |provider| Box::pin(expired(provider)) },
    Case { name: "revoked token in a session", run: |provider| Box::pin(revoked(provider, Mode::Legacy)) },
    Case {
        name: "revoked token without a session",
        run: |provider| Box::pin(revoked(provider, Mode::Modern)),
    },
    Case { name: "ten calls with a revoked token", run: |provider| Box::pin(at_once(provider)) },
    Case { name: "revoked refresh token", run: |provider| Box::pin(logged_out(provider)) },
    Case { name: "forgotten client", run: |provider| Box::pin(forgotten(provider)) },
    Case { name: "step-up in a session", run: |provider| Box::pin(step_up(provider, Mode::Legacy)) },
    Case { name: "step-up without a session", run: |provider| Box::pin(step_up(provider, Mode::Modern)) },
    Case { name: "token for another server", run: |provider| Box::pin(for_another(provider)) },
    Case { name: "program with a secret", run: |provider| Box::pin(with_secret(provider)) },
    Case { name: "program with a key", run: |provider| Box::pin(with_key(provider)) },
    Case { name: "token bound to a key", run: |provider| Box::pin(bound(provider)) },
    Case { name: "rotated keys", run: |provider| Box::pin(rotated(provider)) },
];

/// A server and a user, and what the user's program keeps.
struct Scene {
    server: Serving,
    user: User,
    kept: Kept,
}

impl Scene {
    async fn new(provider: &Provider, kind: Kind) -> Result<Self, Wrong> {
        let server = Serving::start(provider, kind).await?;
        Ok(Self { server, user: User::agreeing(), kept: Kept::default() })
    }

    fn login(&self) -> OAuth {
        OAuth::login("Interop", self.user.clone()).store(self.kept.clone())
    }

    /// The user's program, started anew.
    async fn connect(&self, oauth: OAuth) -> Result<Connection, Wrong> {
        self.connect_in(Mode::Auto, oauth).await
    }

    async fn connect_in(&self, mode: Mode, oauth: OAuth) -> Result<Connection, Wrong> {
        let http = Http::new(&self.server.url)?.auth(oauth);
        Ok(Client::new("interop-login", "0").mode(mode).connect(http).await?)
    }
}

/// Nobody knows the client, and nobody is logged in.
async fn logs_in(provider: &Provider, mode: Mode) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let server = scene.connect_in(mode, scene.login()).await?;
    expect("the user was asked", &scene.user.asked(), &["login", "consent"])?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked again", &scene.user.asked(), &[""; 0])?;
    scene.kept.refresh()?;
    Ok(format!("{} as {}", server.revision(), scene.kept.client_id()?))
}

async fn refused(provider: &Provider) -> Result<String, Wrong> {
    let mut scene = Scene::new(provider, Kind::Reading).await?;
    scene.user = User::refusing();
    match scene.connect(scene.login()).await {
        Ok(_) => Err(Wrong::new("the user declined, and the server granted access")),
        Err(error) if error.to_string().contains("the login was refused: `access_denied`") => {
            Ok(error.to_string())
        }
        Err(error) => Err(error),
    }
}

async fn documented(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let server = scene.connect(scene.login().document(&provider.document)?).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the client is", &scene.kept.client_id()?, &provider.document)?;
    Ok(provider.document.clone())
}

async fn device(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let user = scene.user.clone();
    let show = move |code: &DeviceCode| {
        let (user, url) = (user.clone(), code.complete_url().unwrap_or_default().to_owned());
        // If it comes to nothing, so does the login.
        tokio::spawn(async move { user.visit(&url).await });
    };
    let server = scene.connect(OAuth::device("Interop", show).store(scene.kept.clone())).await?;
    expect_text(&server, "whoami", "ann").await?;
    scene.kept.refresh()?;
    expect("the user was asked", &scene.user.asked(), &["login", "consent"])?;
    Ok("ann".into())
}

/// The program is started again later: it gets another token without the user.
async fn expired(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    scene.connect(scene.login()).await?.close().await;
    scene.user.asked();
    let before = (scene.kept.access()?, scene.kept.refresh()?);
    scene.kept.age();
    let server = scene.connect(scene.login()).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked", &scene.user.asked(), &[""; 0])?;
    if scene.kept.access()? == before.0 || scene.kept.refresh()? == before.1 {
        return Err(Wrong::new("the old tokens are still in use"));
    }
    Ok("another one, and another one to refresh with".into())
}

/// A token is revoked while it is in use: introspection reports it, and the client gets another one.
async fn revoked(provider: &Provider, mode: Mode) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Asking).await?;
    let server = scene.connect_in(mode, scene.login()).await?;
    expect_text(&server, "whoami", "ann").await?;
    scene.user.asked();
    let before = scene.kept.access()?;
    provider.end(before.clone()).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked", &scene.user.asked(), &[""; 0])?;
    if scene.kept.access()? == before {
        return Err(Wrong::new("a revoked token was let in"));
    }
    Ok("another one".into())
}

/// The provider takes a refresh token that comes twice for a stolen one, and ends the login.
async fn at_once(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Asking).await?;
    let server = Arc::new(scene.connect(scene.login()).await?);
    scene.user.asked();
    provider.end(scene.kept.access()?).await?;
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { expect_text(&server, "whoami", "ann").await })
        })
        .collect();
    for call in calls {
        call.await.map_err(Wrong::new)??;
    }
    expect("the user was asked", &scene.user.asked(), &[""; 0])?;
    provider.end(scene.kept.access()?).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked", &scene.user.asked(), &[""; 0])?;
    Ok("one refresh for all".into())
}

/// With the refresh token goes all that it was good for, so the user has to agree again.
async fn logged_out(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Asking).await?;
    let server = scene.connect(scene.login()).await?;
    scene.user.asked();
    let client = scene.kept.client_id()?;
    provider.revoke(&client, &scene.kept.refresh()?).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked", &scene.user.asked(), &["consent"])?;
    expect("the client is", &scene.kept.client_id()?, &client)?;
    Ok("a new login of the same client".into())
}

/// The provider has lost its clients, including one that the program registered earlier.
async fn forgotten(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    scene.connect(scene.login()).await?.close().await;
    scene.user.asked();
    let before = scene.kept.client_id()?;
    provider.forget(before.clone()).await?;
    scene.kept.age();
    let server = scene.connect(scene.login()).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked", &scene.user.asked(), &["consent"])?;
    if scene.kept.client_id()? == before {
        return Err(Wrong::new("the client is still the same"));
    }
    Ok("registered anew".into())
}

async fn step_up(provider: &Provider, mode: Mode) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let server = scene.connect_in(mode, scene.login()).await?;
    expect_text(&server, "whoami", "ann").await?;
    scene.user.asked();
    expect_text(&server, "write", "written").await?;
    expect("the user was asked", &scene.user.asked(), &["consent"])?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked again", &scene.user.asked(), &[""; 0])?;
    Ok("asked for `write` too".into())
}

async fn for_another(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let other = Scene::new(provider, Kind::Reading).await?;
    scene.connect(scene.login()).await?.close().await;
    let statuses = [
        status(&scene.server.url, &scene.kept.access()?).await?,
        status(&other.server.url, &scene.kept.access()?).await?,
    ];
    // The right issuer accepts the assertion, and only rejects the rest of the request.
    expect("the statuses are", &statuses, &[400, 401])?;
    Ok("401".into())
}

async fn status(url: &str, token: &str) -> Result<u16, Wrong> {
    let request = Request::post(url).header(AUTHORIZATION, format!("Bearer {token}"));
    let request = request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = request.body(Bytes::from("{}")).map_err(Wrong::new)?;
    Ok(Requests::new().send(request).await?.status().as_u16())
}

async fn with_secret(provider: &Provider) -> Result<String, Wrong> {
    let client = Registered::new(&provider.issuer, "by-secret").secret(provider.secret("by-secret")?);
    machine(provider, client, "by-secret").await
}

async fn with_key(provider: &Provider) -> Result<String, Wrong> {
    let client = Registered::new(&provider.issuer, "by-key").key(provider.secret("by-key")?)?;
    machine(provider, client, "by-key").await
}

async fn machine(provider: &Provider, client: Registered, name: &str) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let oauth = OAuth::machine(client).store(scene.kept.clone());
    let server = scene.connect(oauth.clone()).await?;
    expect_text(&server, "whoami", name).await?;
    expect_text(&server, "write", "written").await?;
    Ok(name.to_owned())
}

async fn bound(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    let server = scene.connect(scene.login().dpop()).await?;
    expect_text(&server, "whoami", "ann").await?;
    let without_proof = status(&scene.server.url, &scene.kept.access()?).await?;
    expect("without a proof the status is", &without_proof, &401)?;
    Ok("good for nothing without it".into())
}

/// The provider signs with another key, and lists no other. The server has to look again.
async fn rotated(provider: &Provider) -> Result<String, Wrong> {
    let scene = Scene::new(provider, Kind::Reading).await?;
    scene.connect(scene.login()).await?.close().await;
    scene.user.asked();
    let before = scene.kept.access()?;
    provider.rotate().await?;
    scene.kept.age();
    let server = scene.connect(scene.login()).await?;
    expect_text(&server, "whoami", "ann").await?;
    expect("the user was asked", &scene.user.asked(), &[""; 0])?;
    expect("by the old key the status is", &status(&scene.server.url, &before).await?, &401)?;
    Ok("let in by the new one only".into())
}

async fn expect_text(server: &Connection, tool: &str, expected: &str) -> Result<(), Wrong> {
    let result = server.call_tool(tool, ()).await?;
    let text: String = result.content.iter().filter_map(|block| block.as_text()).collect();
    expect(&format!("the result of `{tool}`"), &text.as_str(), &expected)
}

fn expect<A: Debug + PartialEq<B>, B: Debug>(what: &str, found: &A, wanted: &B) -> Result<(), Wrong> {
    if found == wanted { Ok(()) } else { Err(Wrong::new(format!("{what} {found:?} and not {wanted:?}"))) }
}
