//! The declarations of a server to a caller who does not see all of its providers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pintle_proto::server::{Body, Outcome};
use pintle_types::{
    JsonObject,
    schema::{CacheScope, ServerCapabilities},
};
use serde_json::{Value, value::to_raw_value};

use super::{
    provider::{
        definition::Definition,
        info::{ProviderInfo, ReportPart},
        registry::{Providers, RegisteredProvider},
    },
    snapshot::Snapshot,
};
use crate::server::{Cx, Entry, ListKind, Scope, Target};

/// Removes from the result of `initialize` or `server/discover` what providers declare of which the caller sees nothing. No provider is
/// waited for: what is not known of one yet is hidden.
pub(crate) fn declared(cx: &Cx, outcome: Outcome) -> Outcome {
    if !cx.snapshot().hides() {
        return outcome;
    }
    match outcome {
        Outcome::Complete(body) => Outcome::Complete(with_shown(cx, body)),
        Outcome::Cacheable(body, mut hint) => {
            hint.scope = CacheScope::Private;
            Outcome::Cacheable(with_shown(cx, body), hint)
        }
        other => other,
    }
}

fn with_shown(cx: &Cx, body: Body) -> Body {
    let (shown_capabilities, instructions) = cx.snapshot().declared_to(&cx.scope());
    let shown_capabilities = serde_json::to_value(&shown_capabilities).unwrap_or_default();
    let mut capabilities: JsonObject = body.decode_member("capabilities").ok().flatten().unwrap_or_default();
    capabilities.retain(|name, declared| {
        let Some(shown) = shown_capabilities.get(&**name) else { return false };
        match (declared, shown) {
            // Which of them a revision has, the engine knows.
            (Value::Object(declared), Value::Object(shown))
                if matches!(&**name, "extensions" | "experimental") =>
            {
                declared.retain(|name, settings| {
                    let shown = shown.get(name);
                    shown.is_some_and(|shown| {
                        settings.clone_from(shown);
                        true
                    })
                });
            }
            (declared, shown) => declared.clone_from(shown),
        }
        true
    });
    let Ok(capabilities) = to_raw_value(&capabilities) else { return body };
    let body = body.with("capabilities", &capabilities);
    match instructions.and_then(|text| to_raw_value(&text).ok()) {
        Some(text) => body.with("instructions", &text).into(),
        None => body.without(&["instructions"]).into(),
    }
}

/// The sight that a caller has of a provider.
enum Sight {
    Something,
    Nothing,
    /// Nothing is known of its entries yet.
    Unknown,
}

impl Snapshot {
    /// Returns whether an entry is hidden from the caller, as far as it is known without I/O.
    pub(crate) fn hides_target(&self, scope: &Scope<'_>, target: &Target<'_>) -> bool {
        if let Target::Resource(uri) = target {
            return self.hides_resource(scope, uri);
        }
        self.judge_known(scope, target).0
    }

    /// Returns whether an entry is hidden from the caller, as far as it is known without I/O, and the numbers of the providers that have to
    /// read lists to know more. Until then the gates decide by its name.
    pub(crate) fn judge_known(&self, scope: &Scope<'_>, target: &Target<'_>) -> (bool, Vec<usize>) {
        let (found, unread) = self.find(scope.overlay_key(), target, || *scope).known();
        let is_hidden = found.is_some_and(|found| self.as_seen(scope, &found, target).is_hidden())
            || unread.iter().any(|number| self.hides_name(scope, target, *number));
        (is_hidden, unread)
    }

    /// Returns whether the gates hide an entry of this name, if the provider of this number has one.
    fn hides_name(&self, scope: &Scope<'_>, target: &Target<'_>, number: usize) -> bool {
        let backend = self.providers.get(number).map(|known| &*known.info.name);
        !self.gates.shows_read(scope, backend, || Definition::of_name(target))
    }

    /// Returns whether an entry may require rights.
    pub(crate) fn may_require(&self) -> bool {
        self.catalogue.requires.any || self.providers.may_require()
    }

    /// Returns the capabilities and the instructions that the server declares to a caller.
    pub(crate) fn declared_to(&self, scope: &Scope<'_>) -> (ServerCapabilities, Option<String>) {
        let shown = match self.hides() {
            true => self.providers.declaring(|known| self.shown_of(scope, known)),
            false => self.providers.clone(),
        };
        let instructions = shown.instructions(self.settings.instructions.as_deref());
        (self.capabilities_with(&shown), instructions)
    }

    /// Returns what a provider declares to a caller; `None` if that is nothing.
    fn shown_of(&self, scope: &Scope<'_>, known: &RegisteredProvider) -> Option<ProviderInfo> {
        // A provider or gate that panics shows nothing.
        let sight = catch_unwind(AssertUnwindSafe(|| self.sight(scope, known))).unwrap_or(Sight::Nothing);
        match sight {
            Sight::Something => Some(known.provider.info(Some(scope))),
            Sight::Nothing => None,
            // A client that is not told that there are lists never reads them, and then nothing becomes known.
            Sight::Unknown => {
                let mut info = known.provider.info(Some(scope));
                info.declare_lists();
                Some(info)
            }
        }
    }

    /// Looks for an entry of a provider that a caller sees, as far as they are known. The first one ends the search.
    fn sight(&self, scope: &Scope<'_>, known: &RegisteredProvider) -> Sight {
        let backend = &*known.info.name;
        let mut sight = Sight::Unknown;
        for list in ListKind::ALL.into_iter().filter(|list| known.offers(*list)) {
            for name in known.provider.report(ReportPart::Names(list)) {
                sight = Sight::Nothing;
                let target = list.target(name.into());
                let found = known.provider.find(scope, &target).known();
                let found = found.map(|entry| self.restrict(scope, entry, &target, Some(backend)));
                if found.is_some_and(|entry| !entry.is_hidden() && entry.required.shows(scope.extensions)) {
                    return Sight::Something;
                }
            }
        }
        let offers_lists = ListKind::ALL.into_iter().any(|list| known.offers(list));
        // Of a provider without lists, its extensions are all that a gate can be asked about.
        let extensions = known.extensions().filter(|_| !offers_lists);
        // Where there is no gate, only rights hide, and whoever lacks them sees no method either.
        let is_judged = !self.gates.is_empty() || matches!(sight, Sight::Unknown);
        for method in known.info.methods.iter().map(String::as_str).chain(extensions).filter(|_| is_judged) {
            if self.gates.shows(scope, Entry::Method(method), Some(backend), None) {
                return Sight::Something;
            }
            sight = Sight::Nothing;
        }
        sight
    }
}

impl Providers {
    /// Returns the providers with the facts that `shown` returns for each. Those of which it returns nothing are left out.
    fn declaring(&self, shown: impl Fn(&RegisteredProvider) -> Option<ProviderInfo>) -> Self {
        self.iter().filter_map(|known| Some(known.with_info(shown(known)?))).collect()
    }
}
