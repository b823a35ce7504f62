//! Checks the rights that a message requires: once, before any of its requests runs, and against the snapshot that runs it.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use http::{Extensions, Response, StatusCode, header::WWW_AUTHENTICATE};
use pintle_proto::{
    Peer, Revision,
    http::{Refusal, adds_to_granted, name_in},
    server::Call,
};
use pintle_types::{
    Frame, Message, RawObject, Request, RequestId, RpcError,
    method::{self, Target},
    schema::{CompleteParams, CompletionReference, SubscriptionsListenParams},
};

use super::{Body, edge::response::refused, frame::request_id};
use crate::server::{
    Access, Authenticated, Entry, GateRequest, MissingRights, Scope, Target as Entered, ToolRoute,
    access::required::Required, call::context::RequestContext, catalogue::Catalogue,
    gate::request::JudgedUri, request_uri, snapshot::Snapshot,
};
use crate::{target::spelled, uri::Uri};

/// Refuses a body that does not match the signature of its caller.
pub(super) fn check_body(extensions: &Extensions, body: &[u8]) -> Result<(), Box<Response<Body>>> {
    let Some(caller) = extensions.get::<Authenticated>() else { return Ok(()) };
    caller.check_body(body).map_err(|challenge| {
        let error =
            RpcError::invalid_request("the body is not the one that was signed: sign each request anew");
        let mut response = refused(&Refusal::new(StatusCode::UNAUTHORIZED, error), None);
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        Box::new(response)
    })
}

/// Refuses a stateless call or subscription that requires rights that its caller lacks.
pub(super) fn check_call(
    snapshot: &Snapshot,
    context: &RequestContext,
    call: &Call,
) -> Result<(), Box<Response<Body>>> {
    if !snapshot.may_require() {
        return Ok(());
    }
    let peer = call.peer();
    let mut needs = Needs::new(snapshot, context, call.principal());
    needs.add(Some(peer), call.method(), call.params());
    needs.finish(Some(call.id()), Some(peer.revision))
}

/// Refuses messages of a session that require rights that the caller lacks. A batch is refused as a whole, with all rights
/// that it requires, so that the caller has to be asked for consent once.
pub(super) fn check_frame(
    snapshot: &Snapshot,
    context: &RequestContext,
    frame: &Frame,
    peer: impl FnOnce() -> Option<Arc<Peer>>,
    principal: Option<&str>,
) -> Result<(), Box<Response<Body>>> {
    if !snapshot.may_require() {
        return Ok(());
    }
    let peer = peer();
    let mut needs = Needs::new(snapshot, context, principal);
    match frame {
        Frame::One(Message::Request(request)) => needs.add_request(peer.as_ref(), request),
        Frame::One(_) => {}
        Frame::Batch(messages) => messages.iter().for_each(|message| {
            if let Ok(Message::Request(request)) = message {
                needs.add_request(peer.as_ref(), request);
            }
        }),
    }
    needs.finish(request_id(frame), peer.map(|peer| peer.revision))
}

struct Needs<'a> {
    snapshot: &'a Snapshot,
    context: &'a RequestContext,
    principal: Option<&'a str>,
    needed: BTreeSet<Cow<'a, str>>,
    /// The first entry whose rights the caller lacks, for the error message.
    lacking: Option<String>,
}

impl<'a> Needs<'a> {
    fn new(snapshot: &'a Snapshot, context: &'a RequestContext, principal: Option<&'a str>) -> Self {
        Self { snapshot, context, principal, needed: BTreeSet::new(), lacking: None }
    }

    /// Adds the rights that a request of a session requires. A stateless request among them is one of the peer in its `_meta`.
    fn add_request(&mut self, peer: Option<&Arc<Peer>>, request: &Request) {
        let empty = RawObject::empty();
        let params = request.params.as_ref().unwrap_or(&empty);
        match self.snapshot.service.stamped(request) {
            Ok(stamped) if stamped.version().is_some() => {
                self.add(stamped.peer().map(|peer| &**peer), &request.method, params);
            }
            _ => self.add(peer.map(|peer| &**peer), &request.method, params),
        }
    }

    fn add(&mut self, peer: Option<&Peer>, method: &str, params: &RawObject) {
        let catalogue = &self.snapshot.catalogue;
        let named = |target: Target| name_in(params, target.member()?);
        // A method without a row, or with a row without a target, names no entry of the catalogue, and may be a custom one. Lists contain
        // what the caller may see; `ping`, `logging/setLevel`, `resources/unsubscribe` and discovery are open to everybody. A request that
        // names an entry in another way is still refused by `permit`, which runs before the handler of every entry.
        let Some(target) = method::find(method).and_then(|row| row.target) else {
            let used = EntryUse { peer, access: Access::Call, entered: Entered::Method(method.into()) };
            let custom = self.snapshot.custom.get_key_value(method);
            self.need(custom.map(|(name, custom)| (&custom.required, Entry::Method(name))), &used);
            return;
        };
        // It is refused when it is dispatched, and nothing is looked up.
        if request_uri::check(self.snapshot, method, params).is_err() {
            return;
        }
        let use_of = |entered| EntryUse { peer, access: access(method, target), entered };
        match target {
            Target::Tool => {
                let Some(name) = named(target) else { return };
                let own = self.principal.and_then(|principal| catalogue.principal_tools.get(principal));
                let own = own.and_then(|tools| tools.get(&name)).map(found_tool);
                let own = own.or_else(|| tool(catalogue, &name));
                self.need(own, &use_of(Entered::Tool(name)));
            }
            Target::Prompt => {
                let Some(name) = named(target) else { return };
                self.need(prompt(catalogue, &name), &use_of(Entered::Prompt(name)));
            }
            Target::Resource => {
                let Some(uri) = named(target).map(spelled) else { return };
                self.need_resource(&use_of(Entered::Resource(uri)));
            }
            Target::Watched => {
                let Ok(wanted) = params.decode::<SubscriptionsListenParams>() else { return };
                let watched = wanted.notifications.resource_subscriptions.into_iter().flatten();
                // A subscription to more is refused on admission.
                for uri in watched.take(self.snapshot.service.bounds().watched) {
                    self.need_resource(&use_of(Entered::Resource(spelled(uri.into()))));
                }
            }
            Target::Completed => self.complete(peer, params),
            // The extension checks to whom a task belongs.
            Target::Task => {}
        }
    }

    /// Adds the rights that a completion requires: those of the completed entry, because values may reveal its content.
    fn complete(&mut self, peer: Option<&Peer>, params: &RawObject) {
        let catalogue = &self.snapshot.catalogue;
        let use_of = |entered| EntryUse { peer, access: Access::Complete, entered };
        let Ok(CompleteParams { reference, .. }) = params.decode() else { return };
        match reference {
            CompletionReference::Prompt(named) => {
                self.need(prompt(catalogue, &named.name), &use_of(Entered::Prompt(named.name.into())));
            }
            CompletionReference::Resource(resource) => {
                let named = catalogue.templates.get(&resource.uri);
                let named =
                    named.map(|route| (&route.options.required, Entry::Template(&route.resource_template)));
                let found = named.or_else(|| behind(catalogue, &resource.uri));
                self.need(found, &use_of(Entered::Template(resource.uri.into())));
            }
            CompletionReference::Unknown(other) => {
                let name = other.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
                self.need(tool(catalogue, name), &use_of(Entered::Tool(name.into())));
            }
            _ => {}
        }
    }

    fn need(&mut self, found: Option<Found<'a>>, used: &EntryUse<'_>) {
        if !self.need_provided(used)
            && let Some((required, entry)) = found
        {
            self.need_found(required, entry, used);
        }
    }

    /// Adds the rights that a resource requires: of the server, of a source or of a provider.
    fn need_resource(&mut self, used: &EntryUse<'_>) {
        let (catalogue, uri) = (&self.snapshot.catalogue, used.entered.name());
        match catalogue.sources.describe(uri).filter(|_| catalogue.resources.get(uri).is_none()) {
            Some((route, resource)) => self.need_found(&route.required, Entry::Resource(&resource), used),
            None => self.need(behind(catalogue, uri), used),
        }
    }

    fn need_found(&mut self, required: &'a Required, entry: Entry<'_>, used: &EntryUse<'_>) {
        // A hidden entry is treated like one that does not exist.
        if required.is_nothing() || !required.shows(self.context.left()) || !self.sees(used.peer, entry) {
            return;
        }
        self.needed.extend(required.rights().map(Cow::Borrowed));
        if self.is_lacking(required, used) {
            self.report(used, entry, None);
        }
    }

    /// Adds the rights that an entry of a provider requires. Returns whether a provider has it more exactly than the server itself.
    fn need_provided(&mut self, used: &EntryUse<'_>) -> bool {
        let Some(peer) = used.peer.filter(|_| !self.snapshot.providers.is_empty()) else { return false };
        let target = &used.entered;
        let scope = Scope { peer, principal: self.principal, extensions: self.context.extensions() };
        // A provider that panics is asked again when the request is dispatched.
        let described = || self.snapshot.describe_provided(&scope, target);
        let Some(entry) = catch_unwind(AssertUnwindSafe(described)).ok().flatten() else { return false };
        if entry.is_hidden() {
            return true;
        }
        self.needed.extend(entry.required.rights().map(|right| Cow::Owned(right.to_owned())));
        if self.is_lacking(&entry.required, used) && !self.snapshot.gates.is_empty() {
            let provider = || self.snapshot.provided_entry(&scope, target);
            let provider = catch_unwind(AssertUnwindSafe(provider)).ok().flatten();
            let backend = provider.as_ref().map(|(name, _)| name.as_str());
            entry.judged(|found| self.report(used, found, backend));
        }
        true
    }

    /// Returns whether the caller lacks rights, and notes the first entry of which that is so.
    fn is_lacking(&mut self, required: &Required, used: &EntryUse<'_>) -> bool {
        let is_lacking = !required.is_met(self.context.left());
        if is_lacking && self.lacking.is_none() {
            self.lacking = Some(used.entered.name().chars().take(128).collect());
        }
        is_lacking
    }

    /// Has the gates report a use that is refused. They are not asked about it, because it is not dispatched.
    fn report(&self, used: &EntryUse<'_>, entry: Entry<'_>, backend: Option<&str>) {
        let Some(peer) = used.peer else { return };
        let scope = Scope { peer, principal: self.principal, extensions: self.context.extensions() };
        let uri = match &used.entered {
            Entered::Resource(uri) => Some(&**uri),
            _ => None,
        };
        let uri = JudgedUri::of(entry, uri);
        let request = || GateRequest::new(scope, used.access, entry).backend(backend).uri(uri.as_ref());
        // A gate that panics reports nothing.
        let _ = catch_unwind(AssertUnwindSafe(|| self.snapshot.gates.refused(&request())));
    }

    /// Returns whether the server's gates show an entry to the caller. Before the handshake the peer is not known, and the
    /// entry is treated as hidden here; the request is checked again when it is dispatched.
    fn sees(&self, peer: Option<&Peer>, entry: Entry<'_>) -> bool {
        let gates = &self.snapshot.gates;
        if gates.is_empty() {
            return true;
        }
        let Some(peer) = peer else { return false };
        let scope = Scope { peer, principal: self.principal, extensions: self.context.extensions() };
        // A gate that panics hides.
        catch_unwind(AssertUnwindSafe(|| gates.shows(&scope, entry, None))).unwrap_or(false)
    }

    fn finish(self, id: Option<&RequestId>, revision: Option<Revision>) -> Result<(), Box<Response<Body>>> {
        let Some(name) = self.lacking else { return Ok(()) };
        let needed: Vec<_> = self.needed.iter().map(|right| &**right).collect();
        let caller = self.context.left().get::<Authenticated>();
        let mut message =
            format!("`{name}` needs more than the caller may: `{}` is required", needed.join("`, `"));
        if caller.is_none() {
            message += ", and nobody has checked who is calling";
        }
        let mut response = refused(&Refusal::forbidden(message), id);
        let lacking = MissingRights { needed: &needed, accumulates: revision.is_some_and(adds_to_granted) };
        if let Some(challenge) = caller.and_then(|caller| caller.challenge_for(&lacking)) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        Err(Box::new(response))
    }
}

/// A use that a request makes of an entry.
struct EntryUse<'a> {
    /// The client, if it is known.
    peer: Option<&'a Peer>,
    access: Access,
    entered: Entered<'a>,
}

/// Returns the use that a request of a method makes of its target.
fn access(method: &str, target: Target) -> Access {
    match target {
        Target::Tool | Target::Prompt | Target::Task => Access::Call,
        Target::Resource if method == method::RESOURCES_READ => Access::Read,
        Target::Resource | Target::Watched => Access::Subscribe,
        Target::Completed => Access::Complete,
    }
}

/// An entry of the catalogue, and the rights that it requires.
type Found<'a> = (&'a Required, Entry<'a>);

fn tool<'a>(catalogue: &'a Catalogue, name: &str) -> Option<Found<'a>> {
    catalogue.tools.get(name).map(found_tool)
}

fn found_tool(route: &Arc<ToolRoute>) -> Found<'_> {
    (&route.options.required, Entry::Tool(&route.tool))
}

fn prompt<'a>(catalogue: &'a Catalogue, name: &str) -> Option<Found<'a>> {
    catalogue.prompts.get(name).map(|route| (&route.options.required, Entry::Prompt(&route.prompt)))
}

/// Finds the resource or template of a URI that is not one of a source.
fn behind<'a>(catalogue: &'a Catalogue, uri: &str) -> Option<Found<'a>> {
    let read = Uri::of(uri);
    if let Some(route) = catalogue.resource(&read) {
        return Some((&route.options.required, Entry::Resource(&route.resource)));
    }
    catalogue
        .template(&read)
        .map(|(route, _)| (&route.options.required, Entry::Template(&route.resource_template)))
}
