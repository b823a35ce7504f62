//! The reaction to a refused request, decided from facts alone.

use http::{HeaderMap, header::AUTHORIZATION};
use pintle::client::http::Challenge;

use super::{TokenSource, TokensInUse};
use crate::{client::challenge::AuthChallenge, shared::scope::Scopes};

/// The limit of step-ups to one server. The user has to agree to each, and a server could ask forever.
const MAX_STEP_UPS: u32 = 16;
/// The limit of step-ups with the same scopes. A user who declined may have missed the window, or changed their mind.
const MAX_SAME_STEP_UPS: usize = 3;

/// How to react to a refused request.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Exchange the refresh token; log in again if the authorization server no longer accepts it.
    Refresh,
    /// Log in again with these scopes.
    StepUp(Scopes),
    /// Log in, or use tokens from the store.
    LogIn,
    /// Report the refusal: no other token would be accepted.
    GiveUp,
}

/// The step-ups to one server so far.
#[derive(Debug, Default)]
pub(crate) struct StepUps {
    pub(crate) started: u32,
    /// The scopes of each step-up that was denied. Bounded by [`MAX_STEP_UPS`].
    pub(crate) denied: Vec<Scopes>,
}

/// Decides how to react to a request that was refused for the `tries`th time, given the tokens it was sent with.
pub(crate) fn decide(
    refusal: &Refusal<'_>,
    tries: u32,
    tokens: Option<&TokensInUse>,
    step_ups: &StepUps,
) -> Decision {
    if let Some(missing) = &refusal.missing {
        return step_up(missing, tokens, step_ups);
    }
    let Some(tokens) = tokens else { return Decision::LogIn };
    if tries > 1 && tokens.source == TokenSource::Granted {
        return Decision::GiveUp;
    }
    // Stored tokens are sent on the second try: the first was refused for having none, or older ones.
    let untried = tries == 1 || tokens.source == TokenSource::Stored;
    if untried && tokens.tokens.refresh.is_some() { Decision::Refresh } else { Decision::LogIn }
}

fn step_up(missing: &Scopes, tokens: Option<&TokensInUse>, step_ups: &StepUps) -> Decision {
    let requested = tokens.map(|tokens| tokens.tokens.requested.clone());
    // They were requested already, and the user or the authorization server denied them.
    if requested.as_ref().is_some_and(|requested| requested.covers(missing)) {
        return Decision::GiveUp;
    }
    let denials = step_ups.denied.iter().filter(|denied| *denied == missing).count();
    if denials >= MAX_SAME_STEP_UPS || step_ups.started >= MAX_STEP_UPS {
        return Decision::GiveUp;
    }
    Decision::StepUp(requested.unwrap_or_default().and(missing))
}

/// The facts of a refused request.
pub(crate) struct Refusal<'a> {
    /// The access token that was refused.
    pub(crate) token: Option<String>,
    /// The address of the server's resource metadata.
    pub(crate) metadata: Option<&'a str>,
    /// The scopes that the server asks for.
    pub(crate) scopes: Option<Scopes>,
    /// The missing scopes, if nothing else is wrong with the token.
    pub(crate) missing: Option<Scopes>,
    /// Whether the server asks for a DPoP nonce.
    pub(crate) wants_nonce: bool,
}

impl<'a> Refusal<'a> {
    /// Reads a refusal. `None`: no token would change it.
    pub(crate) fn read(challenge: &Challenge<'_>, challenges: &'a [AuthChallenge]) -> Option<Self> {
        let has_error = |error: &'static str| move |one: &&AuthChallenge| one.error() == Some(error);
        let insufficient = challenges.iter().find(has_error("insufficient_scope"));
        let missing = insufficient.filter(|_| challenge.status == 403).and_then(AuthChallenge::scopes);
        if missing.is_none() && challenge.status != 401 {
            return None;
        }
        Some(Self {
            token: token(challenge.sent),
            metadata: challenges.iter().find_map(AuthChallenge::resource_metadata),
            scopes: challenges.iter().find_map(AuthChallenge::scopes),
            missing,
            wants_nonce: challenges.iter().any(|one| has_error("use_dpop_nonce")(&one)),
        })
    }
}

fn token(sent: &HeaderMap) -> Option<String> {
    let (_, token) = sent.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{discovery::Discovered, store::credentials::Tokens};

    fn tokens(source: TokenSource, refresh: bool, requested: &str) -> TokensInUse {
        TokensInUse {
            tokens: Tokens {
                access: "a".into(),
                refresh: refresh.then(|| "r".into()),
                stale_at: None,
                requested: Scopes::parse(requested),
                client_id: "c".into(),
                dpop_key: None,
            },
            dpop: None,
            discovered: Discovered {
                resource: None,
                scopes: None,
                key: "https://as".into(),
                server: Default::default(),
                unused: None,
            },
            source,
        }
    }

    fn refusal(missing: Option<&str>) -> Refusal<'static> {
        Refusal {
            token: Some("a".into()),
            metadata: None,
            scopes: None,
            missing: missing.map(Scopes::parse),
            wants_nonce: false,
        }
    }

    #[test]
    fn a_refused_token_is_refreshed_replaced_or_given_up() {
        use Decision::{GiveUp, LogIn, Refresh};
        for (source, refresh, tries, expected) in [
            (TokenSource::Granted, true, 1, Refresh),
            (TokenSource::Granted, false, 1, LogIn),
            (TokenSource::Granted, true, 2, GiveUp),
            (TokenSource::Granted, false, 2, GiveUp),
            (TokenSource::Refreshed, true, 1, Refresh),
            (TokenSource::Refreshed, false, 1, LogIn),
            (TokenSource::Refreshed, true, 2, LogIn),
            (TokenSource::Stored, true, 1, Refresh),
            (TokenSource::Stored, true, 2, Refresh),
            (TokenSource::Stored, false, 2, LogIn),
        ] {
            let tokens = tokens(source, refresh, "");
            let decision = decide(&refusal(None), tries, Some(&tokens), &StepUps::default());
            assert_eq!(decision, expected, "{source:?} {refresh} {tries}");
        }
        for tries in [1, 2] {
            assert_eq!(decide(&refusal(None), tries, None, &StepUps::default()), LogIn);
        }
    }

    #[test]
    fn missing_scopes_are_requested_with_the_earlier_ones_until_they_were_denied() {
        let missing = refusal(Some("write"));
        let read = tokens(TokenSource::Granted, true, "read");
        let decide = |tokens: Option<&TokensInUse>, step_ups: &StepUps| decide(&missing, 2, tokens, step_ups);
        let step_up = |scopes: &str| Decision::StepUp(Scopes::parse(scopes));
        assert_eq!(decide(Some(&read), &StepUps::default()), step_up("read write"));
        assert_eq!(decide(None, &StepUps::default()), step_up("write"));
        let both = tokens(TokenSource::Granted, true, "write read");
        assert_eq!(decide(Some(&both), &StepUps::default()), Decision::GiveUp);

        let denied = |count, scopes: &str| vec![Scopes::parse(scopes); count];
        let step_ups = |started, denied| StepUps { started, denied };
        assert_eq!(decide(Some(&read), &step_ups(2, denied(2, "write"))), step_up("read write"));
        assert_eq!(decide(Some(&read), &step_ups(3, denied(3, "write"))), Decision::GiveUp);
        assert_eq!(decide(Some(&read), &step_ups(3, denied(3, "other"))), step_up("read write"));
        assert_eq!(decide(Some(&read), &step_ups(15, Vec::new())), step_up("read write"));
        assert_eq!(decide(Some(&read), &step_ups(16, Vec::new())), Decision::GiveUp);
    }
}
