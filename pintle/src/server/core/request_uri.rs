//! The URIs of a request: read once, before anything is looked up.

use pintle_proto::{http::name_in, server::Outcome};
use pintle_types::{RawObject, RpcError, method};
use serde_json::value::to_raw_value;

use super::snapshot::Snapshot;
use crate::{
    server::{Cx, ProvidedEntry, Scope, Target, core::unread_lists::UnreadLists},
    target::spelled,
    uri::{Uri, UriFault, UriLimits},
};

/// Checks the length of the URIs that a request names, before one is looked at. Returns the call with its URI as it is sent on, if the
/// client has spelled it otherwise.
pub(crate) fn read(cx: &Cx) -> Result<Option<Cx>, Outcome> {
    let snapshot = cx.snapshot();
    check(snapshot, cx.method(), cx.params()).map_err(Outcome::Failed)?;
    match cx.method() {
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {}
        _ => return Ok(None),
    }
    let Some(uri) = name_in(cx.params(), "uri") else { return Ok(None) };
    let sent = spelled(uri.clone());
    Ok((sent != uri).then(|| cx.clone().with_params(with_uri(cx.params(), &sent))))
}

/// Returns an error if a URI that a request names is too long.
pub(crate) fn check(snapshot: &Snapshot, method: &str, params: &RawObject) -> Result<(), RpcError> {
    let bounds = snapshot.service.bounds();
    let too_long = |bytes: usize| {
        RpcError::invalid_params(format!("`uri` has more than {bytes} bytes: use a shorter one"))
    };
    match method {
        method::RESOURCES_READ => match name_in(params, "uri") {
            Some(uri) if uri.len() > bounds.uri_bytes => Err(too_long(bounds.uri_bytes)),
            _ => Ok(()),
        },
        method::COMPLETION_COMPLETE => {
            let reference: Option<RawObject> = params.decode_member("ref").ok().flatten();
            match reference.as_ref().and_then(|reference| name_in(reference, "uri")) {
                Some(uri) if uri.len() > bounds.uri_bytes => Err(too_long(bounds.uri_bytes)),
                _ => Ok(()),
            }
        }
        method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
            name_in(params, "uri").map_or(Ok(()), |uri| bounds.check_watched(&uri))
        }
        method::SUBSCRIPTIONS_LISTEN => {
            bounds.check_filter(params)?;
            let watched = crate::target::targets(method, params);
            watched.iter().try_for_each(|target| bounds.check_watched(target.name()))
        }
        _ => Ok(()),
    }
}

/// Returns params with another URI.
pub(crate) fn with_uri(params: &RawObject, uri: &str) -> RawObject {
    to_raw_value(uri).map_or_else(|_| params.clone(), |uri| params.with("uri", &uri))
}

impl Snapshot {
    /// Returns whether gates, transforms or prefixes decide by URIs.
    pub(crate) fn judges_uris(&self) -> bool {
        self.is_gated() || self.providers.judges_uris()
    }

    /// Returns whether readers may differ about a URI where something decides by URIs. It is then found byte for byte as it was listed,
    /// or not at all.
    pub(crate) fn refuses_spelling(&self, uri: &Uri) -> bool {
        uri.fault().is_some() && self.judges_uris()
    }

    /// Returns whether readers may differ about the URI of a target, where something decides by URIs, and an entry is not listed by it.
    pub(crate) fn is_misspelled(&self, target: &Target<'_>, entry: &ProvidedEntry) -> bool {
        let (Target::Resource(uri) | Target::Template(uri)) = target else { return false };
        self.refuses_spelling(&Uri::of(uri)) && entry.judged(|found| found.name() == &**uri) != Some(true)
    }

    /// Returns the outcome for a resource that does not exist.
    pub(crate) fn unknown_resource(&self, uri: &str) -> Outcome {
        match self.refuses_spelling(&Uri::of(uri)) {
            true => Outcome::Failed(RpcError::invalid_params(
                "this spelling cannot be judged: send it as it was listed",
            )),
            false => Outcome::NotFound { uri: uri.to_owned() },
        }
    }

    /// Returns a URI as it was listed, as far as that is known without I/O; else as it is.
    pub(crate) fn listed_spelling(&self, cx: &Cx, uri: &str) -> String {
        let found = self.known(&cx.scope(), &Target::Resource(uri.into()));
        found.and_then(|found| found.entry.listed_as(&Uri::of(uri))).unwrap_or_else(|| uri.to_owned())
    }

    /// Returns whether a resource is hidden from the caller, as far as it is known without I/O.
    pub(crate) fn hides_resource(&self, scope: &Scope<'_>, uri: &str) -> bool {
        self.hides_link(scope, uri, 0, &mut UnreadLists::default())
    }

    /// Returns whether a link leads to a resource that is hidden from the caller, as far as it is known without I/O. The providers that
    /// have to read lists to know more are added to `unread`, as those of the server of this number; until then the gates decide by the URI.
    pub(crate) fn hides_link(
        &self,
        scope: &Scope<'_>,
        uri: &str,
        server: usize,
        unread: &mut UnreadLists,
    ) -> bool {
        let Ok(read) = Uri::read(uri, UriLimits::READ) else { return true };
        // A link may lead to a part of a resource, and have spaces. All else means several things.
        if !matches!(read.fault(), None | Some(UriFault::Space | UriFault::Fragment)) {
            let target = Target::Resource(uri.into());
            let is_listed = |entry: &ProvidedEntry| entry.judged(|found| found.name() == uri) == Some(true);
            let (found, stale) = self.find(scope.overlay_key(), &target, || *scope).known();
            unread.extend(server, stale);
            return found.is_none_or(|found| {
                let seen = self.as_seen(scope, &found, &target);
                seen.is_hidden() || found.backend().is_some() && !is_listed(&seen)
            });
        }
        let mut hides = |uri: &Uri| {
            let target = Target::Resource(uri.as_str().split('#').next().unwrap_or_default().into());
            let (is_hidden, stale) = self.judge_known(scope, &target);
            unread.extend(server, stale);
            is_hidden
        };
        hides(&read)
            || read
                .second_reading()
                .is_some_and(|second| second.fault() >= Some(UriFault::Control) || hides(&second))
    }
}
