//! The endpoints that issue, introspect and revoke tokens.

use serde_json::{Value, json};

use super::{
    answer::Answer,
    claims::{Claims, change},
    endpoint::Endpoint,
    fault::Fault,
    proof::ExpectedProof,
    received::Received,
    state::{State, TokenKey},
    tokens::{Approval, Unknown},
};
use crate::shared::noise::sha256;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The token endpoint.
pub(super) fn token(state: &mut State, issuer: &str, received: &Received) -> Answer {
    let bound_to = match bound_to(state, issuer, received) {
        Ok(bound_to) => bound_to,
        Err(refused) => return refused,
    };
    if received.grant() == Some("token-exchange") {
        return exchange(state, issuer, received).unwrap_or_else(|refused| refused);
    }
    let granted = match received.grant() {
        Some("authorization_code") => redeemed(state, received),
        Some("refresh_token") => refreshed(state, received),
        Some("client_credentials") => machine(state, received),
        Some("device_code") => device(state, received),
        Some("jwt-bearer") => asserted(state, received),
        _ => Err(Answer::refused("unsupported_grant_type", "")),
    };
    match granted {
        Ok(granted) => issue(state, issuer, granted, bound_to),
        Err(refused) => refused,
    }
}

/// The device authorization endpoint: RFC 8628.
pub(super) fn begin_device(state: &mut State, issuer: &str, received: &Received) -> Answer {
    let client = match authenticated(state, received) {
        Ok(client) => client,
        Err(refused) => return refused,
    };
    let subject = state.subject.clone();
    let grant = agreed(state, received, client, subject);
    let code = state.name("device");
    state.tokens.keep_device(code.clone(), grant);
    let url = format!("{}/go", issuer.trim_end_matches('/'));
    Answer::ok(json!({
        "device_code": code,
        "user_code": "ABCD-EFGH",
        "verification_uri": url,
        "verification_uri_complete": format!("{url}?code=ABCD-EFGH"),
        "expires_in": 600,
        "interval": 5,
    }))
}

/// The introspection endpoint, for clients with a secret: RFC 7662 §2.1.
pub(super) fn introspect(state: &State, received: &Received) -> Answer {
    match state.clients.authenticated(received) {
        Ok(_) if received.client().is_some_and(|(_, secret)| secret.is_some()) => {
            let claims = state.tokens.claims(received.get("token").unwrap_or_default(), state.now());
            let Some(claims) = claims else { return Answer::ok(json!({ "active": false })) };
            let mut claimed = claims.clone();
            claimed["active"] = json!(true);
            claimed["token_type"] = json!(if claimed["cnf"].is_null() { "Bearer" } else { "DPoP" });
            Answer::ok(claimed)
        }
        Ok(_) => Answer::refused("invalid_client", "introspection requires a client secret"),
        Err(refused) => refused,
    }
}

/// The revocation endpoint. It does not report whether there was such a token.
pub(super) fn revoke(state: &mut State, received: &Received) -> Answer {
    let client = match authenticated(state, received) {
        Ok(client) => client,
        Err(refused) => return refused,
    };
    state.tokens.revoke(received.get("token").unwrap_or_default(), &client);
    Answer::bare(200)
}

/// Returns the requested scopes that the user consents to.
pub(super) fn agreed(state: &mut State, received: &Received, client: String, subject: String) -> Approval {
    Approval {
        client,
        subject,
        scopes: state.agreed_of(received.get("scope").unwrap_or_default()),
        resource: received.get("resource").map(str::to_owned),
        family: state.tokens.family(),
    }
}

/// Issues a token with these claims.
pub(super) fn signed(state: &mut State, issuer: &str, claims: &Claims, family: u64) -> String {
    let (id, now) = (state.name("access"), state.now());
    let until = now.saturating_add(claims.lifetime.unwrap_or(state.lifetime).as_secs());
    let mut claimed = json!({
        "iss": issuer,
        "sub": claims.subject.as_ref().unwrap_or(&state.subject),
        "client_id": claims.client,
        "iat": now,
        "exp": until,
        "jti": id,
    });
    if !claims.scopes.is_empty() {
        claimed["scope"] = json!(claims.scopes);
    }
    if let Some(audience) = &claims.audience {
        claimed["aud"] = json!(audience);
    }
    change(&mut claimed, claims.more.clone());
    let wrong = state.faults.all(|fault| match fault {
        Fault::Claim(name, value) => Some((name.clone(), value.clone())),
        _ => None,
    });
    change(&mut claimed, wrong);
    let forger = state.faults.happens(|fault| match fault {
        Fault::UnknownKey => Some("key-of-somebody-else".to_owned()),
        Fault::Forged => Some(state.key.id().to_owned()),
        _ => None,
    });
    let token = if state.opaque {
        id
    } else if let Some(name) = forger {
        TokenKey::new(&name).sign(&claimed)
    } else {
        state.key.sign(&claimed)
    };
    state.tokens.keep_access(token.clone(), family, claimed);
    token
}

/// A granted request, and whether it gets a refresh token.
struct Granted {
    grant: Approval,
    /// The scopes of this token: fewer than were granted, if fewer were requested.
    scopes: String,
    renewable: bool,
}

impl Granted {
    fn renewable(grant: Approval) -> Self {
        Self { scopes: grant.scopes.clone(), grant, renewable: true }
    }

    fn once(grant: Approval) -> Self {
        Self { renewable: false, ..Self::renewable(grant) }
    }
}

fn issue(state: &mut State, issuer: &str, granted: Granted, bound_to: Option<String>) -> Answer {
    let Granted { grant, scopes, renewable } = granted;
    let kind = if bound_to.is_some() { "DPoP" } else { "Bearer" };
    let bound = bound_to.map(|key| ("cnf".to_owned(), json!({ "jkt": key })));
    let claims = Claims {
        audience: grant.resource.clone(),
        subject: Some(grant.subject.clone()),
        client: grant.client.clone(),
        scopes: scopes.clone(),
        lifetime: None,
        more: bound.into_iter().collect(),
    };
    let access = signed(state, issuer, &claims, grant.family);
    let mut answer = json!({
        "access_token": access,
        "token_type": kind,
        "expires_in": state.lifetime.as_secs(),
        "scope": scopes,
    });
    if renewable {
        let refresh = state.name("refresh");
        answer["refresh_token"] = Value::from(refresh.as_str());
        state.tokens.keep_refresh(refresh, grant);
    }
    Answer::ok(answer)
}

fn redeemed(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let refused = |why: &str| Answer::refused("invalid_grant", why);
    let client = authenticated(state, received)?;
    let code = state.tokens.redeem(received.get("code").unwrap_or_default());
    let code = code.map_err(|unknown| match unknown {
        Unknown::Again => refused("the code was used before"),
        Unknown::Never => refused("no such code"),
    })?;
    if code.grant.client != client {
        return Err(refused("the code was issued to another client"));
    }
    if code.expires <= state.now() {
        return Err(refused("the code has expired"));
    }
    if received.get("redirect_uri") != Some(&code.redirect_uri) {
        return Err(refused("`redirect_uri` differs from that of the login"));
    }
    let verifier = received.get("code_verifier").map(|verifier| sha256(verifier.as_bytes()));
    if verifier.as_deref() != Some(&code.challenge) {
        return Err(refused("`code_verifier` does not match"));
    }
    same_resource(received, &code.grant)?;
    Ok(Granted::renewable(code.grant))
}

fn refreshed(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = authenticated(state, received)?;
    let refresh = received.get("refresh_token").unwrap_or_default();
    // A wrong request does not use it up.
    if let Some(grant) = state.tokens.good(refresh) {
        if grant.client != client {
            return Err(Answer::refused("invalid_grant", "the refresh token was issued to another client"));
        }
        same_resource(received, grant)?;
        let more = |scope: &str| !grant.scopes.split(' ').any(|own| own == scope);
        if received.get("scope").is_some_and(|scopes| scopes.split(' ').any(more)) {
            return Err(Answer::refused("invalid_scope", "more than the user consented to"));
        }
    }
    let grant = state.tokens.rotate(refresh).map_err(|unknown| {
        let why = match unknown {
            Unknown::Again => "the refresh token was used before",
            Unknown::Never => "no such refresh token",
        };
        Answer::refused("invalid_grant", why)
    })?;
    // RFC 6749 §6: fewer scopes for this token, and all for the next.
    let scopes = received.get("scope").unwrap_or(&grant.scopes).to_owned();
    Ok(Granted { scopes, ..Granted::renewable(grant) })
}

fn machine(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = state.clients.authenticated(received)?;
    if received.client().is_none_or(|(_, secret)| secret.is_none()) {
        return Err(Answer::refused("unauthorized_client", "this grant requires a client secret"));
    }
    Ok(Granted::once(agreed(state, received, client.clone(), client)))
}

fn device(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = authenticated(state, received)?;
    if state.faults.happens(|fault| (*fault == Fault::Denied).then_some(())).is_some() {
        return Err(Answer::refused("access_denied", "the user denied consent"));
    }
    let grant = state.tokens.take_device(received.get("device_code").unwrap_or_default());
    let grant = grant.filter(|grant| grant.client == client);
    let grant = grant.ok_or_else(|| Answer::refused("invalid_grant", "no such device code"))?;
    same_resource(received, &grant)?;
    Ok(Granted::renewable(grant))
}

fn asserted(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = match received.client() {
        Some(_) => authenticated(state, received)?,
        None => String::new(),
    };
    let assertion = received.get("assertion").unwrap_or_default();
    if !state.assertions.iter().any(|known| known == assertion) {
        return Err(Answer::refused("invalid_grant", "the assertion is not trusted"));
    }
    let subject = state.subject.clone();
    Ok(Granted::once(agreed(state, received, client, subject)))
}

/// Exchanges an identity token for an ID-JAG, the assertion of an identity provider for another authorization server, or an access token
/// for one that another server accepts: RFC 8693.
fn exchange(state: &mut State, issuer: &str, received: &Received) -> Result<Answer, Answer> {
    let client = authenticated(state, received)?;
    let token = received.get("subject_token").unwrap_or_default();
    if received.get("requested_token_type") == Some(ACCESS_TOKEN) {
        let claims = state.tokens.claims(token, state.now());
        let subject = claims.and_then(|claims| claims["sub"].as_str().map(str::to_owned));
        let subject = subject.ok_or_else(|| Answer::refused("invalid_grant", "the token is not valid"))?;
        let granted = Granted::once(agreed(state, received, client, subject));
        return Ok(issue(state, issuer, granted, None));
    }
    if !state.assertions.iter().any(|known| known == token) {
        return Err(Answer::refused("invalid_grant", "the token is not trusted"));
    }
    Ok(Answer::ok(json!({
        "access_token": state.name("id-jag"),
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "token_type": "N_A",
        "expires_in": 300,
    })))
}

/// Returns the thumbprint of the client's key, if tokens are bound and the proof is valid.
fn bound_to(state: &State, issuer: &str, received: &Received) -> Result<Option<String>, Answer> {
    let (Some(nonce), Some(proof)) = (&state.nonce, received.headers.get("dpop")) else { return Ok(None) };
    let url = format!("{}{}", issuer.trim_end_matches('/'), Endpoint::Token);
    let wanted = ExpectedProof { method: "POST", url: &url, nonce };
    wanted.check(proof.to_str().unwrap_or_default()).map(Some)
}

/// Authenticates the client of a request.
fn authenticated(state: &State, received: &Received) -> Result<String, Answer> {
    match received.client() {
        Some((id, None)) if state.reads_document(&id) => Ok(id),
        _ => state.clients.authenticated(received),
    }
}

/// Checks that the requested resource is the granted one: RFC 8707 §2.2.
fn same_resource(received: &Received, grant: &Approval) -> Result<(), Answer> {
    match received.get("resource") {
        Some(resource) if grant.resource.as_deref() != Some(resource) => {
            Err(Answer::refused("invalid_target", "`resource` differs from the granted one"))
        }
        _ => Ok(()),
    }
}
