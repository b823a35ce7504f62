//! The login page. Users consent without interaction, unless a fault has them deny it.

use std::collections::BTreeMap;

use super::{answer::Answer, fault::Fault, granting::agreed, received::Received, state::State, tokens::Code};
use crate::shared::form::Form;

/// The lifetime of a code: RFC 6749 §4.1.2 requires a short one.
const SECONDS: u64 = 60;

/// Redirects the user, with a code or an error.
pub(super) fn authorize(state: &mut State, issuer: &str, received: &Received) -> Answer {
    // The redirect address has to be checked before it is used.
    let asked = |name: &str| received.get(name).map(str::to_owned);
    let (Some(client), Some(redirect_uri)) = (asked("client_id"), asked("redirect_uri")) else {
        return Answer::refused("invalid_request", "`client_id` and `redirect_uri` are required");
    };
    match may_send_to(state, &client, &redirect_uri) {
        None => return Answer::refused("invalid_client", "no such client"),
        Some(false) => return Answer::refused("invalid_request", "`redirect_uri` was not registered"),
        Some(true) => {}
    }

    let mut back = BTreeMap::from([("iss".to_owned(), issuer.to_owned())]);
    back.extend(asked("state").map(|state| ("state".to_owned(), state)));
    match code(state, received, client, &redirect_uri) {
        Ok(code) => drop(back.insert("code".into(), code)),
        Err((error, why)) => {
            back.insert("error".into(), error.into());
            back.insert("error_description".into(), why.into());
        }
    }
    let wrong = state.faults.all(|fault| match fault {
        Fault::Redirect(name, value) => Some((name.clone(), value.clone())),
        _ => None,
    });
    for (name, value) in wrong {
        match value {
            Some(value) => drop(back.insert(name, value)),
            None => drop(back.remove(&name)),
        }
    }
    let mut form = Form::new();
    back.iter().for_each(|(name, value)| form.push(name, value));
    Answer::sent_to(form.on(&redirect_uri))
}

fn code(
    state: &mut State,
    received: &Received,
    client: String,
    redirect_uri: &str,
) -> Result<String, (&'static str, &'static str)> {
    if received.get("response_type") != Some("code") {
        return Err(("unsupported_response_type", "only `code` is supported"));
    }
    let challenge = received.get("code_challenge").filter(|_| {
        // RFC 7636 §4.3: the default is `plain`, which protects nothing.
        received.get("code_challenge_method") == Some("S256")
    });
    let challenge = challenge.ok_or(("invalid_request", "PKCE with `S256` is required"))?;
    if state.faults.happens(|fault| (*fault == Fault::Denied).then_some(())).is_some() {
        return Err(("access_denied", "the user denied consent"));
    }
    let subject = state.subject.clone();
    let grant = agreed(state, received, client, subject);
    let expires = state.now() + SECONDS;
    let code =
        Code { grant, challenge: challenge.to_owned(), redirect_uri: redirect_uri.to_owned(), expires };
    let name = state.name("code");
    state.tokens.keep_code(name.clone(), code);
    Ok(name)
}

/// Whether this is a redirect address of the client; `None` if there is no such client.
fn may_send_to(state: &State, client: &str, redirect_uri: &str) -> Option<bool> {
    let known = state.clients.may_send_to(client, redirect_uri);
    known.or_else(|| state.reads_document(client).then_some(true))
}
