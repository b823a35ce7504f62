use std::time::Duration;

use pintle_proto::server::Outcome;
use pintle_types::{RpcError, method, schema::CacheScope};

use super::{
    confirmation::Confirmation,
    decision::{Access, Decision},
    private_result::private,
    request::GateRequest,
    unique_json,
};
use crate::server::{Cx, Entry, Principal, access::required::Required, call::run::HandlerFuture};

/// An entry that a request uses.
#[derive(Clone, Copy)]
pub(crate) struct Used<'a> {
    pub(crate) entry: Entry<'a>,
    pub(crate) required: &'a Required,
    /// The provider that has it.
    pub(crate) backend: Option<&'a str>,
    /// The URI of a resource.
    pub(crate) uri: Option<&'a str>,
    /// The arguments of a call.
    pub(crate) arguments: Option<&'a str>,
    /// Whether the request leads on to another entry, which is counted in place of this one.
    pub(crate) uncounted: bool,
}

impl<'a> Used<'a> {
    /// An entry of the server itself.
    pub(crate) fn own(required: &'a Required, entry: Entry<'a>) -> Self {
        Self { entry, required, backend: None, uri: None, arguments: None, uncounted: false }
    }

    pub(crate) fn uri(self, uri: &'a str) -> Self {
        Self { uri: Some(uri), ..self }
    }

    pub(crate) fn arguments(self, arguments: &'a str) -> Self {
        Self { arguments: Some(arguments), ..self }
    }

    fn name(&self) -> &'a str {
        self.uri.unwrap_or_else(|| self.entry.name())
    }
}

/// The admission of a request.
pub(crate) enum AccessGrant {
    /// A request that may run.
    Granted,
    /// A request that may run, and whose result is for its caller alone.
    Private,
    /// A request that may run if the user agrees.
    Asking(Confirmation),
}

/// The refusal of a request.
pub(crate) enum AccessRefusal {
    /// The entry does not exist for the caller.
    Hidden,
    Denied(Outcome),
}

impl AccessRefusal {
    /// Returns the outcome; `unknown` is that of an entry that does not exist.
    pub(crate) fn or_unknown(self, unknown: impl FnOnce() -> Outcome) -> Outcome {
        match self {
            Self::Hidden => unknown(),
            Self::Denied(outcome) => outcome,
        }
    }
}

/// Decides whether a request may use an entry. Lists ask [`Gates::shows`](super::registry::Gates::shows) instead.
#[inline]
pub(crate) fn admit(cx: &Cx, access: Access, used: &Used<'_>) -> Result<AccessGrant, AccessRefusal> {
    if !used.required.shows(cx.left()) {
        return Err(AccessRefusal::Hidden);
    }
    if cx.snapshot().gates.is_empty() {
        return permit(cx, used.required, used.name())
            .map(|()| AccessGrant::Granted)
            .map_err(AccessRefusal::Denied);
    }
    judge(cx, access, used)
}

#[inline(never)]
fn judge(cx: &Cx, access: Access, used: &Used<'_>) -> Result<AccessGrant, AccessRefusal> {
    let request = GateRequest::new(cx.scope(), access, used.entry)
        .backend(used.backend)
        .uri(used.uri)
        .arguments_text(used.arguments);
    let granted = grant(cx, used, &request);
    if granted.is_err() {
        cx.snapshot().gates.refused(&request);
    }
    granted
}

fn grant(cx: &Cx, used: &Used<'_>, request: &GateRequest<'_>) -> Result<AccessGrant, AccessRefusal> {
    let (gates, access) = (&cx.snapshot().gates, request.access);
    let mut decision = gates.judge(request);
    if access == Access::Complete
        && let Err(fault) = unique_json::parse_object("params", cx.params().as_str())
    {
        decision = decision.or_stricter(Decision::Deny(fault));
    }
    if decision == Decision::Hide {
        return Err(AccessRefusal::Hidden);
    }
    permit(cx, used.required, used.name()).map_err(AccessRefusal::Denied)?;
    let name = || used.name().chars().take(128).collect::<String>();
    let runs = matches!(access, Access::Call | Access::Read);
    let question = match decision {
        Decision::Confirm(question) if runs && can_ask(cx) => Some(question),
        Decision::Confirm(_) if runs => {
            // It is not counted, and gates that report their decisions do so now.
            request.set_unconfirmed();
            gates.judge(request);
            return Err(AccessRefusal::Denied(Outcome::Failed(unconfirmed(&name()))));
        }
        Decision::Allow => None,
        decision => match refusal(&name(), decision) {
            Some(error) => return Err(AccessRefusal::Denied(Outcome::Failed(error))),
            None => None,
        },
    };
    // Later rounds belong to a call that was counted.
    if runs
        && !used.uncounted
        && !cx.call().returned()
        && let Some(wait) = gates.count(request)
    {
        return Err(AccessRefusal::Denied(Outcome::Failed(limited(&name(), wait))));
    }
    Ok(match question {
        None => AccessGrant::Private,
        Some(question) => {
            AccessGrant::Asking(Confirmation::new(&name(), question, used.arguments.unwrap_or_default()))
        }
    })
}

/// Returns whether the user can be asked to confirm the request: only some methods of the protocol can ask.
fn can_ask(cx: &Cx) -> bool {
    cx.can_elicit() && method::find(cx.method()).is_some_and(|row| row.may_ask)
}

/// Returns the error of a request that cannot ask the user; `None` if the decision allows it, or hides the entry.
pub(crate) fn refusal(name: &str, decision: Decision) -> Option<RpcError> {
    Some(match decision {
        Decision::Allow | Decision::Hide => return None,
        Decision::Deny(reason) => RpcError::invalid_request(format!("`{name}` is denied: {reason}")),
        Decision::Limit(wait) => limited(name, wait),
        Decision::Confirm(_) => unconfirmed(name),
    })
}

fn unconfirmed(name: &str) -> RpcError {
    RpcError::invalid_request(format!(
        "`{name}` needs the confirmation of the user, whom this request cannot ask: call it with a client that supports elicitation"
    ))
}

fn limited(name: &str, wait: Duration) -> RpcError {
    let message = format!("`{name}` was called too often: call it again in {wait:.0?}");
    RpcError::overloaded(message, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

/// Returns an error if the caller lacks a right. Over HTTP this is also checked earlier, with a response that names the missing
/// rights; here it is checked against the state that runs the call.
pub(crate) fn permit(cx: &Cx, required: &Required, name: &str) -> Result<(), Outcome> {
    if required.is_met(cx.left()) {
        return Ok(());
    }
    let shown: String = name.chars().take(128).collect();
    let mut message = format!("`{shown}` needs more than the caller may");
    if cx.identity() == Principal::Anonymous {
        message += ", and nobody has checked who is calling";
    }
    Err(Outcome::Failed(RpcError::invalid_request(message)))
}

impl AccessGrant {
    /// Runs a handler as this admission allows: after the confirmation, and with a result for the caller alone.
    pub(crate) fn run(
        self,
        cx: &Cx,
        handler: impl FnOnce(Cx) -> HandlerFuture + Send + 'static,
    ) -> HandlerFuture {
        if matches!(self, Self::Granted) {
            return handler(cx.clone());
        }
        let cx = cx.clone();
        Box::pin(async move {
            let confirmed = match self.confirm(&cx).await {
                Ok(confirmed) => confirmed,
                Err(refused) => return refused,
            };
            private_outcome(&cx, handler(confirmed).await)
        })
    }

    /// Runs a handler as [`run`](Self::run) does, within the future of its caller.
    pub(crate) async fn run_here(self, cx: &Cx, handler: impl FnOnce(Cx) -> HandlerFuture) -> Outcome {
        let is_private = !matches!(self, Self::Granted);
        let confirmed = match self.confirm(cx).await {
            Ok(confirmed) => confirmed,
            Err(refused) => return refused,
        };
        let outcome = handler(confirmed).await;
        if is_private { private_outcome(cx, outcome) } else { outcome }
    }

    /// Asks the user, if they have to confirm the call. Returns it as its handler sees it.
    async fn confirm(self, cx: &Cx) -> Result<Cx, Outcome> {
        match self {
            Self::Granted | Self::Private => Ok(cx.clone()),
            // Boxed, because few calls ask, and the future of all would be as large.
            Self::Asking(confirmation) => Box::pin(confirmation.ask(cx.clone())).await,
        }
    }
}

/// Makes the outcome of a call one for its caller alone.
fn private_outcome(cx: &Cx, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Complete(body) => Outcome::Complete(private(cx, body)),
        Outcome::Cacheable(body, mut hint) => {
            hint.scope = CacheScope::Private;
            Outcome::Cacheable(private(cx, body), hint)
        }
        other => other,
    }
}
