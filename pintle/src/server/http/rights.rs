//! Checks the rights that a message requires: once, before any of its requests runs, and against the snapshot that runs it.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use http::{Extensions, Response, StatusCode, header::WWW_AUTHENTICATE};
use pintle_proto::{
    Peer, Revision,
    http::{Refusal, adds_to_granted},
    server::Call,
};
use pintle_types::{
    Frame, Message, RawObject, Request, RequestId, RpcError,
    method::{self, Target as TargetKind},
};

use super::{Body, edge::response::refused, frame::request_id};
use crate::{
    server::{
        Access, Authenticated, Entry, GateRequest, MissingRights, Scope, Target,
        access::required::Required,
        core::{
            catalogue::overlay::OverlayKey, driver::context::RequestContext, gate::request::JudgedUri,
            request_uri, snapshot::Snapshot,
        },
    },
    target::targets,
};

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
    needed: BTreeSet<String>,
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
        // A method without a row, or with a row without a target, names no entry of the catalogue, and may be a custom one. Lists contain
        // what the caller may see; `ping`, `logging/setLevel`, `resources/unsubscribe` and discovery are open to everybody. A request that
        // names an entry in another way is still refused by `permit`, which runs before the handler of every entry.
        let Some(kind) = method::find(method).and_then(|row| row.target) else {
            self.need(&EntryUse { peer, access: Access::Call, target: Target::Method(method.into()) });
            return;
        };
        // It is refused when it is dispatched, and nothing is looked up.
        if request_uri::check(self.snapshot, method, params).is_err() {
            return;
        }
        // A subscription to more is refused on admission.
        let limit = self.snapshot.service.bounds().watched;
        for target in targets(method, params).into_iter().take(limit) {
            self.need(&EntryUse { peer, access: access(method, kind), target });
        }
    }

    /// Adds the rights that an entry requires. One that is hidden is treated like one that does not exist.
    fn need(&mut self, used: &EntryUse<'_>) {
        let snapshot = self.snapshot;
        let scope = used.peer.map(|peer| Scope::new(peer, self.principal, self.context.extensions()));
        // A provider or gate that panics is asked again when the request is dispatched.
        let found = catch_unwind(AssertUnwindSafe(|| match &scope {
            Some(scope) => {
                let found = snapshot.known(scope, &used.target)?;
                if found.entry.required.is_nothing() {
                    return None;
                }
                let seen = snapshot.as_seen(scope, &found, &used.target);
                Some((seen, found.backend().map(str::to_owned)))
            }
            // Before the handshake the client is not known, and gates are asked when the request is dispatched.
            None if snapshot.gates.is_empty() => {
                let own = snapshot.own(OverlayKey::of_principal(self.principal), &used.target)?;
                Some((own.entry, None))
            }
            None => None,
        }));
        let Some((entry, backend)) = found.ok().flatten() else { return };
        if entry.is_hidden() || !entry.required.shows(self.context.left()) {
            return;
        }
        self.needed.extend(entry.required.rights().map(str::to_owned));
        if self.is_lacking(&entry.required, used) {
            entry.judged(|found| self.report(used, found, backend.as_deref()));
        }
    }

    /// Returns whether the caller lacks rights, and notes the first entry of which that is so.
    fn is_lacking(&mut self, required: &Required, used: &EntryUse<'_>) -> bool {
        let is_lacking = !required.is_met(self.context.left());
        if is_lacking && self.lacking.is_none() {
            self.lacking = Some(used.target.name().chars().take(128).collect());
        }
        is_lacking
    }

    /// Has the gates report a use that is refused. They are not asked about it, because it is not dispatched.
    fn report(&self, used: &EntryUse<'_>, entry: Entry<'_>, backend: Option<&str>) {
        let Some(peer) = used.peer else { return };
        let scope = Scope::new(peer, self.principal, self.context.extensions());
        let uri = match &used.target {
            Target::Resource(uri) => Some(&**uri),
            _ => None,
        };
        let uri = JudgedUri::of(entry, uri);
        let request = || GateRequest::new(scope, used.access, entry).backend(backend).uri(uri.as_ref());
        // A gate that panics reports nothing.
        let _ = catch_unwind(AssertUnwindSafe(|| self.snapshot.gates.refused(&request())));
    }

    fn finish(self, id: Option<&RequestId>, revision: Option<Revision>) -> Result<(), Box<Response<Body>>> {
        let Some(name) = self.lacking else { return Ok(()) };
        let needed: Vec<_> = self.needed.iter().map(|right| &**right).collect();
        let caller = self.context.left().get::<Authenticated>();
        let mut message =
            format!("`{name}` needs more than the caller may: `{}` is required", needed.join("`, `"));
        if caller.is_none() {
            message += ", and the caller is not authenticated";
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
    target: Target<'a>,
}

/// Returns the use that a request of a method makes of its target.
fn access(method: &str, target: TargetKind) -> Access {
    match target {
        TargetKind::Tool | TargetKind::Prompt | TargetKind::Task => Access::Call,
        TargetKind::Resource if method == method::RESOURCES_READ => Access::Read,
        TargetKind::Resource | TargetKind::Watched => Access::Subscribe,
        TargetKind::Completed => Access::Complete,
    }
}
