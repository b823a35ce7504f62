use std::{sync::Arc, time::Duration};

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RawValue, RpcError, method};
use ring::digest;

use super::{
    confirmation::Confirmation,
    decision::{Access, Decision},
    request::{GateRequest, JudgedUri},
    seen_states::StateDigest,
};
use crate::server::{
    Cx, Entry, Principal,
    access::required::Required,
    core::driver::run::HandlerFuture,
    judged::arguments::{ArgumentEdits, JudgedArguments},
};

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
        let mut request = GateRequest::new(cx.scope(), access, self.entry).uri(uri);
        (request.backend, request.upstream) = (self.backend, self.upstream);
        request.arguments = self.arguments.map(judged);
        request.params = (access == Access::Complete).then(|| cx.params().as_str());
        request
    }
}

/// Returns the state of a later round of a call that the server behind claims: its text, however it is written, because the server behind
/// reads no more of it. `None` if it is the first round, or this server claims the state.
fn relayed_state(cx: &Cx) -> Option<StateDigest> {
    if !cx.call().returned() || cx.call().state_use().is_some() {
        return None;
    }
    let state: Option<String> = cx.call().params().decode_member("requestState").ok().flatten();
    digest::digest(&digest::SHA256, state?.as_bytes()).as_ref().try_into().ok()
}

/// The admission of a request, which may run as it was judged.
#[derive(Default)]
pub(crate) struct AccessGrant {
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
pub(crate) fn admit(cx: &Cx, access: Access, used: &Used<'_>) -> Result<AccessGrant, AccessRefusal> {
    let uri = JudgedUri::of(used.entry, used.uri);
    let request = used.request(cx, access, uri.as_ref());
    let granted = grant(cx, used, &request);
    if granted.is_err() {
        cx.snapshot().gates.refused(&request);
    }
    granted
}

/// Has the gates report a request that was refused before they were asked about it.
pub(crate) fn report(cx: &Cx, access: Access, used: &Used<'_>) {
    let gates = &cx.snapshot().gates;
    let uri = JudgedUri::of(used.entry, used.uri);
    let request = used.request(cx, access, uri.as_ref());
    gates.judge(&request);
    gates.refused(&request);
}

fn grant(cx: &Cx, used: &Used<'_>, request: &GateRequest<'_>) -> Result<AccessGrant, AccessRefusal> {
    let (gates, access) = (&cx.snapshot().gates, request.access);
    let decision = gates.judge(request);
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
    if runs && !used.uncounted && !cx.call().returned() {
        count(cx, used, request)?;
    }
    let confirmation = question.map(|question| Confirmation::new(&name(), question, &confirmed));
    let arguments = request.arguments().and_then(JudgedArguments::sent);
    Ok(AccessGrant { confirmation, arguments })
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
    let Some(state) = relayed_state(cx) else { return false };
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
        self.arguments.as_deref().map(RawValue::get)
    }

    /// Returns whether the user is asked first.
    pub(crate) fn asks(&self) -> bool {
        self.confirmation.is_some()
    }

    /// Runs a handler as this admission allows: with the arguments that were judged, after the confirmation if there is one.
    pub(crate) fn run(
        self,
        cx: &Cx,
        handler: impl FnOnce(Cx) -> HandlerFuture + Send + 'static,
    ) -> HandlerFuture {
        let Self { confirmation, arguments } = self;
        let handler = move |cx: Cx| match &arguments {
            Some(arguments) => {
                let params = cx.params().with("arguments", arguments);
                handler(cx.with_params(params))
            }
            None => handler(cx),
        };
        let cx = cx.clone();
        match confirmation {
            None => handler(cx),
            Some(confirmation) => Box::pin(async move {
                match confirmation.ask(cx).await {
                    Ok(confirmed) => handler(confirmed).await,
                    Err(refused) => refused,
                }
            }),
        }
    }
}
