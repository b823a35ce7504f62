//! Subscriptions to resources, as gates and required rights decide about them.

use pintle_proto::server::{Call, CarriedOut, Engine, Outcome};
use pintle_types::{RawObject, method};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{
    driver::run::HandlerFuture,
    gate::admission::{AccessGrant, AccessRefusal},
    lookup::Found,
    provider::subscribing,
    request_uri::with_uri,
    snapshot::Snapshot,
};
use crate::{
    server::{Cx, Scope, Target},
    uri::Uri,
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
pub(crate) async fn permit(cx: &Cx) -> Result<RawObject, Outcome> {
    let snapshot = cx.snapshot();
    let is_gated = snapshot.is_gated();
    if !subscribes(cx) || !(cx.has_edited_params() && snapshot.may_require() || is_gated) {
        return Ok(cx.params().clone());
    }
    let mut known = Vec::new();
    let targets = cx.targets();
    // A subscription to more is refused when it is carried out.
    let limit = snapshot.service.bounds().watched;
    for target in targets.iter().take(limit) {
        match watching(cx, target).await {
            Watching::Granted => known.push(target.name()),
            Watching::Refused(outcome) => return Err(outcome),
            Watching::Unknown if !is_gated => known.push(target.name()),
            Watching::Unknown if cx.method() == method::RESOURCES_SUBSCRIBE => {
                return Err(snapshot.unknown_resource(target.name()));
            }
            Watching::Unknown => {}
        }
    }
    let is_unchanged = known.len() == targets.len() || targets.len() > limit;
    Ok(if is_unchanged { cx.params().clone() } else { watching_only(cx.params(), &known) })
}

/// Has the providers watch again what a session watches that was restored, as far as its client may still do so. `cx` returns the
/// subscription to a resource. What is refused now is not watched: its client has heard nothing of it either.
#[cfg(feature = "http-server")]
pub(crate) async fn restore(uris: Vec<String>, cx: impl Fn(&str) -> Cx) {
    let (mut permitted, mut last) = (Vec::new(), None);
    for uri in uris {
        let cx = cx(&uri);
        if permit(&cx).await.is_ok() {
            permitted.push(uri);
            last = Some(cx);
        }
    }
    if let Some(cx) = last {
        // All of them at the same time. The session watches them, whoever holds them meanwhile.
        let held = subscribing::subscribe(&cx, permitted).await;
        for (uri, error) in held.refused() {
            tracing::debug!(uri, %error, "a resource is not watched again for a restored session");
        }
    }
}

/// Returns the params of a subscription with these resources in place of its own.
fn watching_only<T: Serialize>(params: &RawObject, uris: &[T]) -> RawObject {
    const MEMBER: &str = "resourceSubscriptions";
    let replaced = || {
        let filter: RawObject = params.decode_member("notifications").ok()??;
        let filter = filter.with(MEMBER, &to_raw_value(uris).ok()?);
        Some(params.with("notifications", &to_raw_value(&filter).ok()?))
    };
    // Params that cannot be read name no resources.
    replaced().unwrap_or_else(|| params.clone())
}

/// Returns the params of a subscription with each URI as it was listed: that is what is watched, and what changes of it are told as.
pub(crate) fn as_listed(cx: &Cx, params: RawObject) -> RawObject {
    let snapshot = cx.snapshot();
    // The acknowledgement names what the client does, if nobody else is asked about it.
    if cx.method() == method::SUBSCRIPTIONS_LISTEN && snapshot.providers.is_empty() && !snapshot.hides() {
        return params;
    }
    let targets = crate::target::targets(cx.method(), &params);
    if targets.is_empty() || targets.len() > snapshot.service.bounds().watched {
        return params;
    }
    let listed = targets.iter().map(|target| snapshot.listed_spelling(cx, target.name()));
    let listed: Vec<String> = listed.collect();
    match cx.method() {
        method::SUBSCRIPTIONS_LISTEN => watching_only(&params, &listed),
        _ => with_uri(&params, &listed[0]),
    }
}

/// Returns the URIs around one, the nearest first: each is looked up, so there is a limit.
pub(crate) fn around(uri: &str) -> impl Iterator<Item = &str> {
    const MAX_PARENTS: usize = 64;
    let parents = uri.rmatch_indices('/').take(MAX_PARENTS);
    parents.flat_map(|(at, _)| [&uri[..=at], &uri[..at]]).filter(move |around| *around != uri)
}

/// Decides about a resource. A URI without an entry is a part of the nearest one around it that has one.
async fn watching(cx: &Cx, target: &Target<'_>) -> Watching {
    let (snapshot, uri) = (cx.snapshot(), target.name());
    match snapshot.lookup(cx, target).await {
        Ok(Some(found)) => return watching_found(cx, &found, target),
        Ok(None) => {}
        Err(failed) if failed.is_hidden(cx, target) => return Watching::Unknown,
        // A subscription to many resources does not depend on one backend.
        Err(_) if cx.method() == method::SUBSCRIPTIONS_LISTEN => return Watching::Unknown,
        Err(failed) => return Watching::Refused(failed.error.outcome(cx.method(), Some(uri))),
    }
    // Readers may differ about this spelling: it is the listed one, or there is no such resource.
    if snapshot.refuses_spelling(&Uri::of(uri)) {
        return Watching::Unknown;
    }
    let mut found = around(uri).filter_map(|around| {
        let target = Target::Resource(around.into());
        let found = snapshot.known(&cx.scope(), &target)?;
        Some(watching_found(cx, &found, &target))
    });
    found.next().unwrap_or(Watching::Unknown)
}

/// Decides about a resource that was found.
fn watching_found(cx: &Cx, found: &Found, target: &Target<'_>) -> Watching {
    let entry = &found.entry;
    if cx.snapshot().is_misspelled(target, entry) {
        return Watching::Unknown;
    }
    if !entry.is_hidden() && !entry.owned {
        entry.report_behind(cx);
    }
    match (entry.admit(cx, found.backend(), target).into(), &entry.unwatched) {
        (Watching::Granted, Some(reason)) if !entry.owned => {
            Watching::Refused(Outcome::Failed((**reason).clone()))
        }
        (watching, _) => watching,
    }
}

/// Carries out what a call that is over has prepared. The subscription to a resource that the session does not watch
/// after all ends at its provider.
pub(crate) fn carry_out(
    engine: &mut Engine,
    snapshot: &Snapshot,
    call: &Call,
    outcome: Outcome,
    cx: impl FnOnce() -> Cx,
) -> CarriedOut {
    let wanted = call.prepared_watch();
    let done = engine.carry_out(&snapshot.service, call, outcome);
    if let Some(uri) = wanted
        && !engine.listener().is_some_and(|listener| listener.watches(&uri))
    {
        let cx = cx();
        crate::runtime::spawn(async move { subscribing::unsubscribe(&cx, &uri).await });
    }
    done
}

/// Returns the future of a request in its layers, after which the subscription that a `resources/unsubscribe` names ends at its provider,
/// if no layer has failed the request.
pub(crate) fn ending(cx: &Cx, handling: HandlerFuture) -> HandlerFuture {
    if cx.method() != method::RESOURCES_UNSUBSCRIBE {
        return handling;
    }
    let cx = cx.clone();
    Box::pin(async move {
        let outcome = handling.await;
        if matches!(outcome, Outcome::Complete(_) | Outcome::Cacheable(..))
            && let Some(uri) = cx.call().prepared_unwatch()
        {
            subscribing::unsubscribe(&cx, &uri).await;
        }
        outcome
    })
}

/// Returns whether a request subscribes to resources.
pub(crate) fn subscribes(cx: &Cx) -> bool {
    matches!(cx.method(), method::RESOURCES_SUBSCRIBE | method::SUBSCRIPTIONS_LISTEN)
}

impl Snapshot {
    /// Returns whether a caller may be notified of a change of this resource: whether it sees the entry that the URI leads to. A URI
    /// without an entry is a part of the nearest one around it that has one; if there is none either, it is `true`.
    pub(crate) fn shows_resource(&self, scope: &Scope<'_>, uri: &str) -> bool {
        if !self.is_gated() && !self.may_require() {
            return true;
        }
        // What is too long to be watched is too long to be judged for each change.
        if self.service.bounds().check_watched(uri).is_err() {
            return false;
        }
        let uris = std::iter::once(uri).chain(around(uri));
        uris.filter_map(|uri| self.sees_resource(scope, uri)).next().unwrap_or(true)
    }

    fn sees_resource(&self, scope: &Scope<'_>, uri: &str) -> Option<bool> {
        let entry = self.seen(scope, &Target::Resource(uri.into()))?;
        Some(!entry.is_hidden() && entry.unwatched.is_none() && entry.required.is_met(scope.extensions))
    }
}
