//! Subscriptions to resources, as gates and required rights decide about them.

use pintle_proto::server::Outcome;
use pintle_types::{RawObject, RpcError, method};
use serde_json::value::to_raw_value;

use crate::server::{
    Access, Cx, Entry, Scope, Target,
    access::required::Required,
    catalogue::options::CatalogueRoute as _,
    gate::admission::{AccessGrant, AccessRefusal, Used, admit, permit as permit_rights},
    provider::entry::ProvidedEntry,
    snapshot::Snapshot,
};

/// The decision about a resource that a caller wants to watch.
enum Watching {
    Granted,
    Refused(Outcome),
    /// There is no such resource for the caller.
    Unknown,
}

impl From<Result<AccessGrant, AccessRefusal>> for Watching {
    fn from(admitted: Result<AccessGrant, AccessRefusal>) -> Self {
        match admitted {
            Ok(_) => Self::Granted,
            Err(AccessRefusal::Denied(outcome)) => Self::Refused(outcome),
            Err(AccessRefusal::Hidden) => Self::Unknown,
        }
    }
}

/// Returns the params with which a request is carried out, or its refusal. Over HTTP, the rights for resources that the client named
/// were checked before; a layer may have put others in their place.
///
/// If there are gates, a resource that is hidden from the caller and one that does not exist are the same: a `resources/subscribe` of
/// it fails, and a `subscriptions/listen` is granted without it.
pub(super) async fn permit(cx: &Cx) -> Result<RawObject, Outcome> {
    let snapshot = cx.snapshot();
    let is_gated = snapshot.is_gated();
    if !subscribes(cx) || !(cx.has_edited_params() && snapshot.may_require() || is_gated) {
        return Ok(cx.params().clone());
    }
    let mut unknown = Vec::new();
    // A subscription to more is refused when it is carried out.
    for target in cx.targets().iter().take(snapshot.service.bounds().watched) {
        match watching(cx, target).await {
            Watching::Granted => {}
            Watching::Refused(outcome) => return Err(outcome),
            Watching::Unknown if !is_gated => {}
            Watching::Unknown if cx.method() == method::RESOURCES_SUBSCRIBE => {
                return Err(Outcome::NotFound { uri: target.name().to_owned() });
            }
            Watching::Unknown => unknown.push(target.name().to_owned()),
        }
    }
    if unknown.is_empty() {
        return Ok(cx.params().clone());
    }
    without(cx.params(), &unknown).map_err(|error| {
        Outcome::Failed(RpcError::invalid_params(pintle_types::plain_error(&error).to_string()))
    })
}

/// Removes resources from the filter of a subscription.
fn without(params: &RawObject, unknown: &[String]) -> Result<RawObject, serde_json::Error> {
    const MEMBER: &str = "resourceSubscriptions";
    let filter: RawObject = params.decode_member("notifications")?.unwrap_or_default();
    let mut uris: Vec<String> = filter.decode_member(MEMBER)?.unwrap_or_default();
    uris.retain(|uri| !unknown.contains(uri));
    let filter = filter.with(MEMBER, &to_raw_value(&uris)?);
    Ok(params.with("notifications", &to_raw_value(&filter)?))
}

/// Decides about a resource. A URI without an entry is a part of the nearest one around it that has one.
async fn watching(cx: &Cx, target: &Target<'_>) -> Watching {
    let (snapshot, uri) = (cx.snapshot(), target.name());
    if let Some(own) = watching_own(cx, uri) {
        return own;
    }
    if !snapshot.providers.is_empty() {
        match snapshot.providers.find(cx, target, usize::MAX).await {
            Ok(Some(found)) => return watching_provided(cx, &found.provider.name(), &found.entry, uri),
            Ok(None) => {}
            Err(failed) if failed.is_hidden(cx, target) => return Watching::Unknown,
            // A subscription to many resources does not depend on one backend.
            Err(_) if cx.method() == method::SUBSCRIPTIONS_LISTEN => return Watching::Unknown,
            Err(failed) => return Watching::Refused(failed.error.outcome(cx.method(), Some(uri))),
        }
    }
    let around = uri.rmatch_indices('/').flat_map(|(at, _)| [&uri[..=at], &uri[..at]]);
    let mut found = around.filter(|around| *around != uri).filter_map(|around| {
        watching_own(cx, around).or_else(|| {
            let target = Target::Resource(around.into());
            let (backend, entry) = snapshot.providers.describe(&cx.scope(), &target)?;
            Some(watching_provided(cx, &backend, &entry, around))
        })
    });
    found.next().unwrap_or(Watching::Unknown)
}

/// Decides about a resource of the server itself.
fn watching_own(cx: &Cx, uri: &str) -> Option<Watching> {
    let catalogue = &cx.snapshot().catalogue;
    let used = |used: Used<'_>| Some(admit(cx, Access::Subscribe, &used.uri(uri)).into());
    if let Some(route) = catalogue.resources.get(uri) {
        used(Used::own(&route.options.required, route.entry()))
    } else if let Some((_, resource)) = catalogue.sources.describe(uri) {
        used(Used::own(&Required::NOTHING, Entry::Resource(&resource)))
    } else if let Some((route, _)) = catalogue.template(uri) {
        used(Used::own(&route.options.required, route.entry()))
    } else {
        None
    }
}

/// Decides about a resource of a provider.
fn watching_provided(cx: &Cx, backend: &str, entry: &ProvidedEntry, uri: &str) -> Watching {
    if entry.is_hidden() {
        return Watching::Unknown;
    }
    if entry.owned {
        return Watching::Granted;
    }
    let judged = entry.judged(|found| {
        admit(
            cx,
            Access::Subscribe,
            &Used { backend: Some(backend), ..Used::own(&entry.required, found).uri(uri) },
        )
    });
    let watching = match judged {
        Some(admitted) => admitted.into(),
        // Nothing is known of it that a gate could judge.
        None if !cx.snapshot().gates.is_empty() => Watching::Unknown,
        None => {
            permit_rights(cx, &entry.required, uri).map_or_else(Watching::Refused, |()| Watching::Granted)
        }
    };
    match (watching, &entry.unwatched) {
        (Watching::Granted, Some(reason)) => Watching::Refused(Outcome::Failed((**reason).clone())),
        (watching, _) => watching,
    }
}

/// Returns whether a request subscribes to resources.
fn subscribes(cx: &Cx) -> bool {
    matches!(cx.method(), method::RESOURCES_SUBSCRIBE | method::SUBSCRIPTIONS_LISTEN)
}

/// Returns the resource that a request subscribes to, if that is what it looks for.
pub(super) fn watched<'a>(cx: &Cx, target: &'a Target<'_>) -> Option<&'a str> {
    (subscribes(cx) && matches!(target, Target::Resource(_))).then(|| target.name())
}

impl Snapshot {
    /// Has the gates report their decision about a subscription to a resource of the server itself.
    pub(super) fn report_watching_own(&self, scope: &Scope<'_>, uri: &str) {
        self.catalogue.judged(uri, &|required, entry| {
            let is_shown = required.shows(scope.extensions);
            if is_shown {
                self.gates.subscribing(scope, entry, None, uri);
            }
            is_shown
        });
    }

    /// Has the gates report their decision about a subscription to a resource of a provider.
    pub(super) fn report_watching(&self, scope: &Scope<'_>, entry: &ProvidedEntry, backend: &str, uri: &str) {
        if !entry.is_hidden() && !entry.owned {
            entry.judged(|found| self.gates.subscribing(scope, found, Some(backend), uri));
        }
    }
}
