//! What happens where tokens are had, asked about and given back.

use serde_json::{Value, json};

use super::{
    answer::Answer,
    claims::{Claims, change},
    endpoint::Endpoint,
    fault::Fault,
    proof::Wanted,
    received::Received,
    state::{Key, State},
    tokens::{Grant, Unknown},
};
use crate::shared::noise::sha256;

/// The token endpoint.
pub(super) fn token(state: &mut State, issuer: &str, received: &Received) -> Answer {
    let bound_to = match bound_to(state, issuer, received) {
        Ok(bound_to) => bound_to,
        Err(refused) => return refused,
    };
    if received.grant() == Some("token-exchange") {
        return exchange(state, received).unwrap_or_else(|refused| refused);
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

/// A login on another device begins: RFC 8628.
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

/// A server asks about a token. It has to be a client with a secret: RFC 7662 §2.1.
pub(super) fn introspect(state: &State, received: &Received) -> Answer {
    match state.clients.authenticated(received) {
        Ok(_) if received.client().is_some_and(|(_, secret)| secret.is_some()) => {
            let claims = state.tokens.claims(received.get("token").unwrap_or_default(), state.now());
            let Some(claims) = claims else { return Answer::ok(json!({ "active": false })) };
            let mut told = claims.clone();
            told["active"] = json!(true);
            told["token_type"] = json!(if told["cnf"].is_null() { "Bearer" } else { "DPoP" });
            Answer::ok(told)
        }
        Ok(_) => Answer::refused("invalid_client", "who asks about tokens needs a secret"),
        Err(refused) => refused,
    }
}

/// A client gives a token back. Whether there was one is nobody's business.
pub(super) fn revoke(state: &mut State, received: &Received) -> Answer {
    let client = match authenticated(state, received) {
        Ok(client) => client,
        Err(refused) => return refused,
    };
    state.tokens.revoke(received.get("token").unwrap_or_default(), &client);
    Answer::bare(200)
}

/// What is agreed to of what is asked for.
pub(super) fn agreed(state: &mut State, received: &Received, client: String, subject: String) -> Grant {
    Grant {
        client,
        subject,
        scopes: state.agreed_of(received.get("scope").unwrap_or_default()),
        resource: received.get("resource").map(str::to_owned),
        family: state.tokens.family(),
    }
}

/// A token that says this.
pub(super) fn signed(state: &mut State, issuer: &str, claims: &Claims, family: u64) -> String {
    let (id, now) = (state.name("access"), state.now());
    let until = now.saturating_add(claims.lifetime.unwrap_or(state.lifetime).as_secs());
    let mut told = json!({
        "iss": issuer,
        "sub": claims.subject.as_ref().unwrap_or(&state.subject),
        "client_id": claims.client,
        "iat": now,
        "exp": until,
        "jti": id,
    });
    if !claims.scopes.is_empty() {
        told["scope"] = json!(claims.scopes);
    }
    if let Some(audience) = &claims.audience {
        told["aud"] = json!(audience);
    }
    change(&mut told, claims.more.clone());
    let wrong = state.faults.all(|fault| match fault {
        Fault::Claim(name, value) => Some((name.clone(), value.clone())),
        _ => None,
    });
    change(&mut told, wrong);
    let forger = state.faults.happens(|fault| match fault {
        Fault::UnknownKey => Some("key-of-somebody-else".to_owned()),
        Fault::Forged => Some(state.key.id().to_owned()),
        _ => None,
    });
    let token = if state.opaque {
        id
    } else if let Some(name) = forger {
        Key::new(&name).sign(&told)
    } else {
        state.key.sign(&told)
    };
    state.tokens.keep_access(token.clone(), family, told);
    token
}

/// What was granted, and whether it can be had again without the user.
struct Granted {
    grant: Grant,
    /// What this token is for: less than was granted, if that was asked for.
    scopes: String,
    renewable: bool,
}

impl Granted {
    fn renewable(grant: Grant) -> Self {
        Self { scopes: grant.scopes.clone(), grant, renewable: true }
    }

    fn once(grant: Grant) -> Self {
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
        return Err(refused("the code was given to another client"));
    }
    if code.expires <= state.now() {
        return Err(refused("the code has expired"));
    }
    if received.get("redirect_uri") != Some(&code.redirect_uri) {
        return Err(refused("`redirect_uri` is another than at the login"));
    }
    let verifier = received.get("code_verifier").map(|verifier| sha256(verifier.as_bytes()));
    if verifier.as_deref() != Some(&code.challenge) {
        return Err(refused("`code_verifier` does not fit"));
    }
    same_resource(received, &code.grant)?;
    Ok(Granted::renewable(code.grant))
}

fn refreshed(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = authenticated(state, received)?;
    let refresh = received.get("refresh_token").unwrap_or_default();
    // What is asked for wrongly does not use it up.
    if let Some(grant) = state.tokens.good(refresh) {
        if grant.client != client {
            return Err(Answer::refused("invalid_grant", "the refresh token was given to another client"));
        }
        same_resource(received, grant)?;
        let more = |scope: &str| !grant.scopes.split(' ').any(|own| own == scope);
        if received.get("scope").is_some_and(|scopes| scopes.split(' ').any(more)) {
            return Err(Answer::refused("invalid_scope", "more than was agreed to"));
        }
    }
    let grant = state.tokens.rotate(refresh).map_err(|unknown| {
        let why = match unknown {
            Unknown::Again => "the refresh token was used before",
            Unknown::Never => "no such refresh token",
        };
        Answer::refused("invalid_grant", why)
    })?;
    // RFC 6749 §6: less for this token, and as much as before for the next.
    let scopes = received.get("scope").unwrap_or(&grant.scopes).to_owned();
    Ok(Granted { scopes, ..Granted::renewable(grant) })
}

fn machine(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = state.clients.authenticated(received)?;
    if received.client().is_none_or(|(_, secret)| secret.is_none()) {
        return Err(Answer::refused(
            "unauthorized_client",
            "only a client with a secret is let in by itself",
        ));
    }
    Ok(Granted::once(agreed(state, received, client.clone(), client)))
}

fn device(state: &mut State, received: &Received) -> Result<Granted, Answer> {
    let client = authenticated(state, received)?;
    if state.faults.happens(|fault| (*fault == Fault::Denied).then_some(())).is_some() {
        return Err(Answer::refused("access_denied", "the user said no"));
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
        return Err(Answer::refused("invalid_grant", "nobody here trusts that assertion"));
    }
    let subject = state.subject.clone();
    Ok(Granted::once(agreed(state, received, client, subject)))
}

/// An identity provider's word about its user for another authorization server: an ID-JAG, by RFC 8693.
fn exchange(state: &mut State, received: &Received) -> Result<Answer, Answer> {
    authenticated(state, received)?;
    let token = received.get("subject_token").unwrap_or_default();
    if !state.assertions.iter().any(|known| known == token) {
        return Err(Answer::refused("invalid_grant", "nobody here trusts that token"));
    }
    Ok(Answer::ok(json!({
        "access_token": state.name("id-jag"),
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "token_type": "N_A",
        "expires_in": 300,
    })))
}

/// The key that tokens are to be bound to, if they are, and the client has shown that it has one.
fn bound_to(state: &State, issuer: &str, received: &Received) -> Result<Option<String>, Answer> {
    let (Some(nonce), Some(proof)) = (&state.nonce, received.headers.get("dpop")) else { return Ok(None) };
    let url = format!("{}{}", issuer.trim_end_matches('/'), Endpoint::Token);
    let wanted = Wanted { method: "POST", url: &url, nonce };
    wanted.check(proof.to_str().unwrap_or_default()).map(Some)
}

/// Who asks, if it is who it says.
fn authenticated(state: &State, received: &Received) -> Result<String, Answer> {
    match received.client() {
        Some((id, None)) if state.reads_document(&id) => Ok(id),
        _ => state.clients.authenticated(received),
    }
}

/// RFC 8707 §2.2: what a token is asked for has to be what was agreed to.
fn same_resource(received: &Received, grant: &Grant) -> Result<(), Answer> {
    match received.get("resource") {
        Some(resource) if grant.resource.as_deref() != Some(resource) => {
            Err(Answer::refused("invalid_target", "`resource` is another than was agreed to"))
        }
        _ => Ok(()),
    }
}
