//! Revocation of tokens at the authorization server: RFC 7009.

use http::Uri;
use pintle::{Error, Result};

use super::{
    flow::Flow,
    settings::Settings,
    token::{TokenError, TokenRequest},
};
use crate::{
    client::{consent::callback::error_text, discovery::Discovered, store::stored_login::StoredLogin},
    shared::{form::Form, identity::Identity, metadata::ServerMetadata, reach::Reach, web::Guarded},
};

/// Revokes the stored tokens of a login: the refresh token, from which others could be issued, and then the access token. Returns the
/// first error after both were tried.
pub(crate) async fn revoke(settings: &Settings, login: &StoredLogin) -> Result<()> {
    let unread = || Error::Misuse(format!("`{}` is not the address of a server", login.resource));
    let server: Uri = login.resource.parse().map_err(|_| unread())?;
    let addresses = settings.web.addresses(server.host().ok_or_else(unread)?).await;
    let web = Guarded { web: &*settings.web, reach: Reach::of(&server, &addresses) };
    let metadata = ServerMetadata::fetch(web, &login.issuer).await?;
    let Some(endpoint) = metadata.revocation_endpoint.clone() else {
        return Err(Error::Refused(format!(
            "the authorization server `{}` does not offer to revoke tokens: they stay valid until they expire",
            login.issuer
        )));
    };
    let discovered = Discovered {
        resource: Some(login.resource.clone()),
        scopes: None,
        key: login.issuer.clone(),
        server: metadata,
        unused: None,
    };
    let flow = Flow { settings, web, server: &server, discovered: &discovered, dpop: None };
    // A refresh by another process at the same time would leave it with a token that was not revoked.
    let _lock = flow.lock().await;
    let stored = settings.store.load(&login.issuer).await?.unwrap_or_default();
    let Some(tokens) = stored.tokens.get(&login.resource) else { return Ok(()) };
    let client = flow.known(&tokens.client_id).await?;
    let refresh = match &tokens.refresh {
        Some(token) => send(&flow, &endpoint, client.as_ref(), "refresh_token", token.reveal()).await,
        None => Ok(()),
    };
    let access = send(&flow, &endpoint, client.as_ref(), "access_token", tokens.access.reveal()).await;
    refresh.and(access)
}

async fn send(
    flow: &Flow<'_>,
    endpoint: &str,
    client: Option<&Identity>,
    kind: &str,
    token: &str,
) -> Result<()> {
    let form = Form::new().with("token", token).with("token_type_hint", kind);
    let request: TokenRequest<'_> = flow.request(endpoint, client, form);
    request.send_for_status().await.map_err(|error| match error {
        TokenError::Refused { error, description } => Error::Refused(format!(
            "the authorization server `{}` refused to revoke the {}: {}",
            flow.discovered.key,
            kind.replace('_', " "),
            error_text(&error, &description)
        )),
        TokenError::Failed(error) => error,
    })
}
