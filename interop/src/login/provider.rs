use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response, header::CONTENT_TYPE};
use pintle::client::http::Requests;
use serde::Deserialize;
use serde_json::Value;

use crate::Wrong;

/// The authorization server, and who is known to it.
#[derive(Clone, Debug, Deserialize)]
pub struct Provider {
    pub(super) issuer: String,
    /// The address of a document about a client.
    pub(super) document: String,
    /// The secret or the key of each client that was registered before.
    clients: BTreeMap<String, String>,
    /// The base URL of its control endpoints.
    switches: String,
}

impl Provider {
    /// The one that this address tells of.
    ///
    /// # Errors
    ///
    /// There is none.
    pub async fn at(setup: &str) -> Result<Self, Wrong> {
        let answer = send(Method::GET, setup, String::new()).await?;
        serde_json::from_slice(answer.body()).map_err(|error| Wrong::new(format!("`{setup}`: {error}")))
    }

    pub(super) fn secret(&self, client: &str) -> Result<&str, Wrong> {
        self.clients
            .get(client)
            .map(String::as_str)
            .ok_or_else(|| Wrong::new(format!("no such client: `{client}`")))
    }

    /// Has a public client give a token back.
    pub(super) async fn revoke(&self, client: &str, token: &str) -> Result<(), Wrong> {
        let place = format!("{}/.well-known/openid-configuration", self.issuer);
        let metadata = send(Method::GET, &place, String::new()).await?;
        let metadata: Value = serde_json::from_slice(metadata.body()).map_err(Wrong::new)?;
        let place = metadata["revocation_endpoint"].as_str().unwrap_or_default();
        // Neither has a character that would have to be escaped.
        send(Method::POST, place, format!("client_id={client}&token={token}")).await.map(drop)
    }

    /// Has an operator end an access token, and nothing else.
    pub(super) async fn end(&self, token: String) -> Result<(), Wrong> {
        self.switch("end", token).await
    }

    /// Has it forget a client that had registered itself.
    pub(super) async fn forget(&self, client: String) -> Result<(), Wrong> {
        self.switch("forget", client).await
    }

    /// Has it sign with another key from now on.
    pub(super) async fn rotate(&self) -> Result<(), Wrong> {
        self.switch("rotate", String::new()).await
    }

    async fn switch(&self, name: &str, body: String) -> Result<(), Wrong> {
        send(Method::POST, &format!("{}{name}", self.switches), body).await.map(drop)
    }
}

async fn send(method: Method, url: &str, form: String) -> Result<Response<Bytes>, Wrong> {
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Bytes::from(form))
        .map_err(Wrong::new)?;
    let answer = Requests::new().send(request).await?;
    if answer.status() != 200 {
        return Err(Wrong::new(format!("`{url}` answered with status {}", answer.status())));
    }
    Ok(answer)
}
