use std::time::Duration;

use pintle::{
    Server,
    server::{http::HttpServing, tool},
};
use pintle_oauth::server::{Introspection, Jwt, Principal, Protected, Registered, Verify};
use tokio::net::TcpListener;

use super::provider::Provider;
use crate::Wrong;

/// How a server finds out what a token is worth. The provider gives tokens of the kind that the path stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A token that the provider signed.
    Reading,
    /// The provider is asked about each.
    Asking,
}

/// A server that lets in whom the provider has let in, as long as this is kept.
pub(super) struct Serving {
    pub(super) url: String,
    _serving: HttpServing,
}

impl Serving {
    pub(super) async fn start(provider: &Provider, kind: Kind) -> Result<Self, Wrong> {
        match kind {
            Kind::Reading => serve("/reading", Jwt::new(&provider.issuer)?).await,
            Kind::Asking => {
                let us = Registered::new(&provider.issuer, "resource-server");
                let tokens = Introspection::new(us.secret(provider.secret("resource-server")?))?;
                // A revoked one is to be seen at once.
                serve("/asking", tokens.cache_for(Duration::ZERO)).await
            }
        }
    }
}

async fn serve(path: &str, tokens: impl Verify) -> Result<Serving, Wrong> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Wrong::new)?;
    let url = format!("http://{}{path}", listener.local_addr().map_err(Wrong::new)?);
    let server = Server::new("notes", "1.0.0")
        .tool(tool("whoami", |who: Principal| async move { who.subject().to_owned() }))
        .tool(tool("write", || async { "written" }).requires(["write"]));
    let protected = Protected::new(url.as_str(), tokens)?.scopes(["read"]);
    let serving = server.http()?.at(path).serve_with(&protected, listener).map_err(Wrong::new)?;
    Ok(Serving { url, _serving: serving })
}
