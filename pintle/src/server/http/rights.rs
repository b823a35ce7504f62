//! Whether the caller may have what its message asks for: decided once, before anything of the message is run.

use std::collections::BTreeSet;

use http::{Extensions, Response, StatusCode, header::WWW_AUTHENTICATE};
use pintle_proto::{
    Revision,
    http::{Refusal, adds_to_granted, name_in},
};
use pintle_types::{
    Frame, Message, RawObject, Request, RequestId, RpcError,
    schema::{CompleteParams, CompletionReference, SubscriptionsListenParams},
};

use super::{Body, post::id_of, response::refused, session::Session};
use crate::server::{Authenticated, Lacking, catalogue::Catalogue, required::Required, state::State};

/// Where nobody authenticates, nobody has any rights over HTTP: what requires some is not open to the world because a
/// layer was forgotten.
pub(super) fn mark(extensions: &mut Extensions) {
    if extensions.get::<Authenticated>().is_none() {
        extensions.insert(Authenticated::nobody());
    }
}

/// Refuses a body that is not the one that its caller has signed.
pub(super) fn check_body(extensions: &Extensions, body: &[u8]) -> Result<(), Box<Response<Body>>> {
    let Some(caller) = extensions.get::<Authenticated>() else { return Ok(()) };
    caller.signed(body).map_err(|challenge| {
        let error =
            RpcError::invalid_request("the body is not the one that was signed: sign each request anew");
        let mut response = refused(&Refusal::new(StatusCode::UNAUTHORIZED, error), None);
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        Box::new(response)
    })
}

/// Refuses a request of the stateless era that needs more than its caller has.
pub(super) fn check_request(
    state: &State,
    extensions: &Extensions,
    request: &Request,
    revision: Option<Revision>,
) -> Result<(), Box<Response<Body>>> {
    if !state.catalogue.requires.some {
        return Ok(());
    }
    let mut needs = Needs::new(state, extensions);
    needs.add(request);
    needs.finish(Some(&request.id), revision)
}

/// Refuses what comes in a session and needs more than its caller has; a batch as a whole, with all that any part of it
/// needs, so that nobody is asked twice.
pub(super) fn check_frame(
    state: &State,
    extensions: &Extensions,
    frame: &Frame,
    session: &Session,
) -> Result<(), Box<Response<Body>>> {
    if !state.catalogue.requires.some {
        return Ok(());
    }
    let mut needs = Needs::new(state, extensions);
    match frame {
        Frame::One(Message::Request(request)) => needs.add(request),
        Frame::One(_) => {}
        Frame::Batch(messages) => messages.iter().for_each(|message| {
            if let Ok(Message::Request(request)) = message {
                needs.add(request);
            }
        }),
    }
    needs.finish(id_of(frame), session.peer().map(|peer| peer.revision))
}

struct Needs<'a> {
    catalogue: &'a Catalogue,
    extensions: &'a Extensions,
    /// Resources of one subscription; one with more is refused later.
    most: usize,
    needed: BTreeSet<&'a str>,
    /// The first that needs more than there is, for the message.
    lacking: Option<String>,
}

impl<'a> Needs<'a> {
    fn new(state: &'a State, extensions: &'a Extensions) -> Self {
        let most = state.service.bounds().watched;
        Self { catalogue: &state.catalogue, extensions, most, needed: BTreeSet::new(), lacking: None }
    }

    fn add(&mut self, request: &Request) {
        let Some(params) = &request.params else { return };
        let catalogue = self.catalogue;
        let named = |member: &str| name_in(params, member);
        match &*request.method {
            "tools/call" => {
                let Some(name) = named("name") else { return };
                self.need(catalogue.tools.get(&name).map(|route| &route.required), &name);
            }
            "prompts/get" => {
                let Some(name) = named("name") else { return };
                self.need(catalogue.prompts.get(&name).map(|route| &route.required), &name);
            }
            "resources/read" | "resources/subscribe" => {
                let Some(uri) = named("uri") else { return };
                self.need(behind(catalogue, &uri), &uri);
            }
            "subscriptions/listen" => {
                let Ok(wanted) = params.decode::<SubscriptionsListenParams>() else { return };
                let watched = wanted.notifications.resource_subscriptions.into_iter().flatten();
                for uri in watched.take(self.most) {
                    self.need(behind(catalogue, &uri), &uri);
                }
            }
            "completion/complete" => self.complete(params),
            _ => {}
        }
    }

    /// What completes an argument may tell as much as the thing itself.
    fn complete(&mut self, params: &RawObject) {
        let catalogue = self.catalogue;
        let Ok(CompleteParams { reference, .. }) = params.decode() else { return };
        match reference {
            CompletionReference::Prompt(prompt) => {
                self.need(catalogue.prompts.get(&prompt.name).map(|route| &route.required), &prompt.name);
            }
            CompletionReference::Resource(resource) => {
                let named = catalogue.templates.get(&resource.uri).map(|route| &route.required);
                self.need(named.or_else(|| behind(catalogue, &resource.uri)), &resource.uri);
            }
            CompletionReference::Unknown(other) => {
                let name = other.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
                self.need(catalogue.tools.get(name).map(|route| &route.required), name);
            }
            _ => {}
        }
    }

    fn need(&mut self, required: Option<&'a Required>, name: &str) {
        // What is hidden is not there: whoever looks for it by name learns no more than that.
        let Some(required) = required.filter(|required| required.shows(self.extensions)) else { return };
        self.needed.extend(required.rights());
        if self.lacking.is_none() && !required.is_met(self.extensions) {
            self.lacking = Some(name.chars().take(128).collect());
        }
    }

    fn finish(self, id: Option<&RequestId>, revision: Option<Revision>) -> Result<(), Box<Response<Body>>> {
        let Some(name) = self.lacking else { return Ok(()) };
        let needed: Vec<_> = self.needed.into_iter().collect();
        let Some(caller) = self.extensions.get::<Authenticated>() else { return Ok(()) };
        let mut said =
            format!("`{name}` needs more than the caller may: `{}` is required", needed.join("`, `"));
        if caller.principal().is_none() {
            said += ", and nobody has checked who is calling";
        }
        let mut response = refused(&Refusal::forbidden(said), id);
        let lacking = Lacking { needed: &needed, adds: revision.is_some_and(adds_to_granted) };
        if let Some(challenge) = caller.challenged(&lacking) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        Err(Box::new(response))
    }
}

/// What is required of whoever reads what this URI leads to.
fn behind<'a>(catalogue: &'a Catalogue, uri: &str) -> Option<&'a Required> {
    if let Some(route) = catalogue.resources.get(uri) {
        return Some(&route.required);
    }
    if catalogue.sources.find(uri).is_some() {
        return None;
    }
    catalogue.template(uri).map(|(route, _)| &route.required)
}
