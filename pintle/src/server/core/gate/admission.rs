use std::{sync::Arc, time::Duration};

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RawValue, RpcError, method};
use ring::digest;

use super::{
    arguments::{ArgumentEdits, JudgedArguments},
    confirmation::Confirmation,
    decision::{Access, Decision},
    request::{GateRequest, JudgedUri},
    seen_states::StateDigest,
    unique_json,
};
use crate::server::{Cx, Entry, Principal, access::required::Required, core::driver::run::HandlerFuture};

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
    /// The schema of the arguments, as the server that has the tool lists it.
    pub(crate) schema: Option<&'a JsonObject>,
    /// The changes of the arguments on the way to the provider, the innermost first.
    pub(crate) edits: &'a [Arc<ArgumentEdits>],
    /// The name that the provider has for the entry, if it is another one.
    pub(crate) upstream: Option<&'a str>,
    /// Whether the request leads on to another entry, which is counted in place of this one.
    pub(crate) uncounted: bool,
}

impl<'a> Used<'a> {
    /// An entry of the server itself.
    pub(crate) fn own(required: &'a Required, entry: Entry<'a>) -> Self {
        let schema = match entry {
            Entry::Tool(tool) => Some(&*tool.input_schema),
            _ => None,
        };
        Self {
            entry,
            required,
            backend: None,
            uri: None,
            arguments: None,
            schema,
            edits: &[],
            upstream: None,
            uncounted: false,
        }
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

    fn shown_name(&self) -> String {
        self.name().chars().take(128).collect()
    }

    /// Returns the request that gates decide about.
    fn request<'r>(&'r self, cx: &'r Cx, access: Access, uri: Option<&'r JudgedUri>) -> GateRequest<'r> {
        let judged = |text| JudgedArguments::new(text, self.edits, self.schema);
        GateRequest::new(cx.scope(), access, self.entry)
            .backend(self.backend)
            .uri(uri)
            .upstream(self.upstream)
            .with_arguments(self.arguments.map(judged))
    }
}

/// The round of a call, as far as rates and the audit log look at it.
enum Round {
    First,
    /// A later one, whose state is claimed by this server.
    Own,
    /// A later one, whose state the server behind claims.
    Relayed(StateDigest),
}

impl Round {
    fn of(cx: &Cx) -> Self {
        if !cx.call().returned() {
            return Self::First;
        }
        // The text, however it is written: the server behind reads no more of it.
        let state: Option<String> = cx.call().params().decode_member("requestState").ok().flatten();
        let state = state.filter(|_| cx.call().state_use().is_none());
        let digest = |state: String| digest::digest(&digest::SHA256, state.as_bytes());
        match state.map(digest).and_then(|digest| digest.as_ref().try_into().ok()) {
            Some(digest) => Self::Relayed(digest),
            None => Self::Own,
        }
    }
}

/// The admission of a request.
pub(crate) enum AccessGrant {
    /// A request that may run.
    Granted,
    /// A request that may run as it was judged.
    Judged(JudgedGrant),
}

/// The admission of a request that gates have judged.
#[derive(Default)]
pub(crate) struct JudgedGrant {
    /// The question that the user has to answer first.
    confirmation: Option<Confirmation>,
    /// The arguments in place of those that were sent: with defaults that a gate has read.
    arguments: Option<Box<RawValue>>,
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
    if !cx.snapshot().gates.is_empty() {
        return judge(cx, access, used);
    }
    if !used.required.shows(cx.left()) {
        return Err(AccessRefusal::Hidden);
    }
    permit(cx, used.required, used.name()).map(|()| AccessGrant::Granted).map_err(AccessRefusal::Denied)
}

/// Has the gates report a request that was refused before they were asked about it.
pub(crate) fn report(cx: &Cx, access: Access, used: &Used<'_>) {
    let gates = &cx.snapshot().gates;
    if !gates.is_empty() {
        let uri = JudgedUri::of(used.entry, used.uri);
        let request = used.request(cx, access, uri.as_ref());
        gates.judge(&request);
        gates.refused(&request);
    }
}

#[inline(never)]
fn judge(cx: &Cx, access: Access, used: &Used<'_>) -> Result<AccessGrant, AccessRefusal> {
    let uri = JudgedUri::of(used.entry, used.uri);
    let request = used.request(cx, access, uri.as_ref());
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
    if decision == Decision::Hide || !used.required.shows(cx.left()) {
        return Err(AccessRefusal::Hidden);
    }
    permit(cx, used.required, used.name()).map_err(AccessRefusal::Denied)?;
    let name = || used.shown_name();
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
    // What the user agrees to has one reading.
    let confirmed = match &question {
        Some(_) => request.arguments().map_or(Ok(String::new()), JudgedArguments::canonical),
        None => Ok(String::new()),
    };
    let confirmed = confirmed.map_err(|fault| {
        let error = RpcError::invalid_request(format!("`{}` is denied: {fault}", name()));
        AccessRefusal::Denied(Outcome::Failed(error))
    })?;
    // Later rounds belong to a call that was counted.
    if runs && !used.uncounted && matches!(Round::of(cx), Round::First) {
        count(cx, used, request)?;
    }
    let confirmation = question.map(|question| Confirmation::new(&name(), question, &confirmed));
    let arguments = request.arguments().and_then(JudgedArguments::sent);
    Ok(AccessGrant::Judged(JudgedGrant { confirmation, arguments }))
}

fn count(cx: &Cx, used: &Used<'_>, request: &GateRequest<'_>) -> Result<(), AccessRefusal> {
    match cx.snapshot().gates.count(request) {
        Some(wait) => Err(AccessRefusal::Denied(Outcome::Failed(limited(&used.shown_name(), wait)))),
        None => Ok(()),
    }
}

/// Returns whether a call that is admitted has a state of the server behind that was seen before, or nobody knows. Then it is
/// [counted again](count_again).
pub(crate) async fn is_repeated(cx: &Cx) -> bool {
    let snapshot = cx.snapshot();
    if snapshot.gates.is_empty() {
        return false;
    }
    let Round::Relayed(state) = Round::of(cx) else { return false };
    let lifetime = Duration::from_millis(snapshot.service.bounds().state_ttl_ms);
    snapshot.gates.is_repeated(state, lifetime).await
}

/// Counts a call whose state was seen before.
pub(crate) fn count_again(cx: &Cx, access: Access, used: &Used<'_>) -> Result<(), AccessRefusal> {
    let is_counted = matches!(access, Access::Call | Access::Read) && !used.uncounted;
    if !is_counted {
        return Ok(());
    }
    let uri = JudgedUri::of(used.entry, used.uri);
    count(cx, used, &used.request(cx, access, uri.as_ref()).replayed())
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
        message += ", and the caller is not authenticated";
    }
    Err(Outcome::Failed(RpcError::invalid_request(message)))
}

impl AccessGrant {
    /// Returns the arguments in place of those that were sent.
    pub(crate) fn arguments(&self) -> Option<&str> {
        match self {
            Self::Granted => None,
            Self::Judged(grant) => grant.arguments.as_deref().map(RawValue::get),
        }
    }

    /// Returns whether the user is asked first.
    pub(crate) fn asks(&self) -> bool {
        matches!(self, Self::Judged(JudgedGrant { confirmation: Some(_), .. }))
    }

    /// Runs a handler as this admission allows: after the confirmation, with the arguments that were judged.
    pub(crate) fn run(
        self,
        cx: &Cx,
        handler: impl FnOnce(Cx) -> HandlerFuture + Send + 'static,
    ) -> HandlerFuture {
        match self {
            Self::Granted => handler(cx.clone()),
            Self::Judged(grant) => {
                let cx = cx.clone();
                Box::pin(async move { grant.run(&cx, handler).await })
            }
        }
    }

    /// Runs a handler as [`run`](Self::run) does, within the future of its caller.
    pub(crate) async fn run_here(self, cx: &Cx, handler: impl FnOnce(Cx) -> HandlerFuture) -> Outcome {
        match self {
            Self::Granted => handler(cx.clone()).await,
            Self::Judged(grant) => grant.run(cx, handler).await,
        }
    }
}

impl JudgedGrant {
    async fn run(self, cx: &Cx, handler: impl FnOnce(Cx) -> HandlerFuture) -> Outcome {
        let mut judged = cx.clone();
        if let Some(confirmation) = self.confirmation {
            // Boxed, because few calls ask, and the future of all would be as large.
            judged = match Box::pin(confirmation.ask(judged)).await {
                Ok(confirmed) => confirmed,
                Err(refused) => return refused,
            };
        }
        if let Some(arguments) = &self.arguments {
            let params = judged.params().with("arguments", arguments);
            judged = judged.with_params(params);
        }
        handler(judged).await
    }
}
