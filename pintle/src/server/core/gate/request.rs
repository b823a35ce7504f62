use std::{
    cell::{Cell, OnceCell},
    fmt,
};

use pintle_types::schema::ToolAnnotations;

use super::decision::{Access, Decision};
use crate::{
    server::{
        Authenticated, Entry, Principal, Scope,
        judged::{
            arguments::{ArgumentType, JudgedArguments, Reading},
            unique_json,
        },
    },
    uri::{Uri, UriFault},
};

/// A request that a [`Gate`](crate::server::Gate) decides about.
#[non_exhaustive]
pub struct GateRequest<'a> {
    /// The caller.
    pub scope: Scope<'a>,
    /// The use that the caller makes of the entry.
    pub access: Access,
    /// The entry, as clients see it in lists.
    pub entry: Entry<'a>,
    /// The name of the [provider](crate::server::Provider) that has the entry; `None` for entries of the server itself.
    pub backend: Option<&'a str>,
    /// The URI that is read, watched or completed, if the entry is a resource or a template, in its canonical spelling: see
    /// [`Uri`](crate::uri::Uri).
    pub uri: Option<&'a str>,
    /// The URI as a server may read it that decodes too often.
    second_uri: Option<&'a Uri>,
    /// Whether readers may differ about what the URI means.
    is_unclear: bool,
    /// Whether a decision that was made is made again, such as for each notification of a subscription.
    pub(crate) is_repeated: bool,
    /// Whether the user has to confirm the request and cannot be asked.
    is_unconfirmed: Cell<bool>,
    /// Whether a gate has reported what it decided.
    is_reported: Cell<bool>,
    /// Whether the call has a state of the server behind that was seen before.
    pub(crate) is_replayed: bool,
    /// The name that the backend has for the entry, if it is another one.
    pub(crate) upstream: Option<&'a str>,
    /// The arguments of a call.
    pub(super) arguments: Option<JudgedArguments<'a>>,
    /// The params of a completion, which have to have one reading.
    pub(super) params: Option<&'a str>,
    /// Why an argument that a gate has read cannot be judged.
    fault: OnceCell<String>,
    /// The rule by which a gate has decided, for when it counts the request; see [`note_rule`](Self::note_rule).
    rule: Cell<Option<(u64, Option<usize>)>>,
}

impl<'a> GateRequest<'a> {
    pub(crate) fn new(scope: Scope<'a>, access: Access, entry: Entry<'a>) -> Self {
        Self {
            scope,
            access,
            entry,
            backend: None,
            uri: None,
            second_uri: None,
            is_unclear: false,
            is_repeated: false,
            is_unconfirmed: Cell::new(false),
            is_reported: Cell::new(false),
            is_replayed: false,
            upstream: None,
            arguments: None,
            params: None,
            fault: OnceCell::new(),
            rule: Cell::new(None),
        }
    }

    pub(crate) fn backend(self, backend: Option<&'a str>) -> Self {
        Self { backend, ..self }
    }

    pub(crate) fn uri(self, judged: Option<&'a JudgedUri>) -> Self {
        let Some(JudgedUri { uri, second, is_unclear }) = judged else { return self };
        Self { uri: Some(uri.as_str()), second_uri: second.as_ref(), is_unclear: *is_unclear, ..self }
    }

    /// Returns whether readers may differ about what the URI means, so that nobody can judge it.
    pub(crate) fn is_unclear(&self) -> bool {
        self.is_unclear
    }

    /// Returns the request with the URI as a server may read it that decodes too often, if it has such a reading.
    pub(crate) fn second_reading(&self) -> Option<Self> {
        let uri = self.second_uri?.as_str();
        let request = Self::new(self.scope, self.access, self.entry).backend(self.backend).repeated();
        // A resource has no arguments.
        Some(Self { uri: Some(uri), upstream: self.upstream, ..request })
    }

    pub(crate) fn repeated(self) -> Self {
        Self { is_repeated: true, ..self }
    }

    /// Sets that the user has to confirm the request and cannot be asked.
    pub(crate) fn set_unconfirmed(&self) {
        self.is_unconfirmed.set(true);
    }

    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.is_unconfirmed.get()
    }

    /// Notes that a gate has reported what it decided.
    pub(crate) fn set_reported(&self) {
        self.is_reported.set(true);
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.is_reported.get()
    }

    /// Sets that the call has a state of the server behind that was seen before.
    pub(crate) fn replayed(self) -> Self {
        Self { is_replayed: true, ..self }
    }

    /// Decides about the params of a completion: they are denied if they have two readings.
    pub(crate) fn params_decision(&self) -> Decision {
        let read = self.params.map(|params| unique_json::parse_object("params", params));
        read.and_then(Result::err).map_or(Decision::Allow, Decision::Deny)
    }

    /// Returns whether the caller is local, anonymous or a named principal.
    pub fn identity(&self) -> Principal<'a> {
        self.scope.identity()
    }

    /// Returns whether the caller has a right. An anonymous caller has none.
    pub fn has(&self, right: &str) -> bool {
        self.scope.extensions.get::<Authenticated>().is_some_and(|caller| caller.has(right))
    }

    /// Returns the name of the tool, prompt or method, the URI of the resource in its canonical spelling, or the URI template.
    pub fn name(&self) -> &'a str {
        match self.entry {
            Entry::Resource(_) | Entry::Template(_) => self.uri.unwrap_or_else(|| self.entry.name()),
            _ => self.entry.name(),
        }
    }

    /// Returns the hints of a tool. They are statements of the server that has it, and may be wrong.
    pub fn hints(&self) -> Option<&'a ToolAnnotations> {
        match self.entry {
            Entry::Tool(tool) => tool.annotations.as_ref(),
            _ => None,
        }
    }

    /// Reads an argument of a call, or a param of a [method](Entry::Method), by its name, or by a path of names with dots. It has one of
    /// these types. `None` for requests that have no arguments.
    ///
    /// What is read is what the server behind gets: with everything that a [`Transform`](crate::server::Transform) sets, and with the default
    /// of the tool's schema, which is then sent too. A path through a list leads to the values of all elements.
    ///
    /// An argument that has two readings, whose type is another one, or not that of the schema, cannot be judged. Such a call is denied,
    /// whatever the gate decides.
    ///
    /// ```
    /// use pintle::server::{ArgumentType, Decision, GateRequest};
    ///
    /// fn no_force(request: &GateRequest<'_>) -> Decision {
    ///     let forced = request.argument("options.force", &[ArgumentType::Boolean]);
    ///     match forced.is_some_and(|forced| forced.any(|value| value == Some(&true.into()))) {
    ///         true => Decision::Deny("do not force".to_owned()),
    ///         false => Decision::Allow,
    ///     }
    /// }
    /// # let _ = pintle::Server::new("s", "1.0.0").gate(no_force);
    /// ```
    pub fn argument(&self, path: &str, types: &[ArgumentType]) -> Option<Reading<'_>> {
        let reading = self.arguments.as_ref()?.read(path, types);
        Some(reading.unwrap_or_else(|fault| {
            let _ = self.fault.set(fault);
            Reading::UNJUDGEABLE
        }))
    }

    /// Returns the arguments of a call, or the params of a method.
    pub(crate) fn arguments(&self) -> Option<&JudgedArguments<'a>> {
        self.arguments.as_ref()
    }

    /// Notes the number of the rule by which the rules `of` have decided; `None` is their default. That of the last gate is kept.
    pub(crate) fn note_rule(&self, of: u64, number: Option<usize>) {
        self.rule.set(Some((of, number)));
    }

    /// Returns the number of the rule by which the rules `of` have decided, if it was noted.
    pub(crate) fn noted_rule(&self, of: u64) -> Option<Option<usize>> {
        self.rule.get().filter(|(rules, _)| *rules == of).map(|(_, number)| number)
    }

    /// Returns why an argument cannot be judged, if a gate has read it.
    pub(crate) fn arguments_fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }
}

/// The URI by which gates judge a resource, or a template as the resource of a URI.
pub(crate) struct JudgedUri {
    uri: Uri,
    second: Option<Uri>,
    is_unclear: bool,
}

impl JudgedUri {
    /// Reads the URI of a request for an entry; of a resource in a list, its own.
    pub(crate) fn of(entry: Entry<'_>, requested: Option<&str>) -> Option<Self> {
        let (uri, is_listed) = match (entry, requested) {
            (Entry::Resource(resource), None) => (Uri::of(&resource.uri), true),
            (Entry::Resource(resource), Some(text)) => {
                let uri = Uri::of(text);
                let is_listed = resource.uri == text
                    || uri.fault().is_none() && Uri::of(&resource.uri).as_str() == uri.as_str();
                (uri, is_listed)
            }
            (Entry::Template(_), Some(text)) => (Uri::of(text), false),
            _ => return None,
        };
        let second = if is_listed { None } else { uri.second_reading() };
        // Of the second reading, only what leads elsewhere counts: `100%25` is a name.
        let leads_out =
            second.as_ref().is_some_and(|it| it.fault().is_some_and(|fault| fault >= UriFault::Control));
        let is_unclear = leads_out || (!is_listed && uri.fault().is_some());
        Some(Self { uri, second, is_unclear })
    }
}

impl fmt::Debug for GateRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateRequest")
            .field("identity", &self.identity())
            .field("access", &self.access)
            .field("name", &self.name())
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::Extensions;
    use pintle_proto::{Peer, Revision};
    use pintle_types::schema::{Resource, ResourceTemplate};

    use super::*;
    use crate::server::core::gate::registry::Gates;

    /// Returns the URI that is judged, its second reading, and whether it is unclear.
    fn judged(entry: Entry<'_>, requested: Option<&str>) -> Option<(String, Option<String>, bool)> {
        let JudgedUri { uri, second, is_unclear } = JudgedUri::of(entry, requested)?;
        Some((uri.as_str().to_owned(), second.map(|second| second.as_str().to_owned()), is_unclear))
    }

    #[test]
    fn a_uri_that_leads_elsewhere_if_it_is_decoded_again_is_unclear() {
        let template = ResourceTemplate::new("note://{+path}", "notes");
        let entry = Entry::Template(&template);
        for (uri, second, is_unclear) in [
            ("note://a/b", None, false),
            ("note://a/b%2Fc", Some("note://a/b/c"), false),
            // A name with a `%`, and one with an encoded letter.
            ("note://a/100%25", Some("note://a/100%25"), false),
            ("note://a/%2573ecret", Some("note://a/secret"), false),
            ("note://a/..%2Fsecret", Some("note://a/../secret"), true),
            ("note://a/%252E%252E/secret", Some("note://a/../secret"), true),
            ("note://a/b%250A", Some("note://a/b%0A"), true),
            // Readers differ about these as they are.
            ("note://a/../b", None, true),
            ("note://a/b%0A", None, true),
        ] {
            let expected = (uri.to_owned(), second.map(str::to_owned), is_unclear);
            assert_eq!(judged(entry, Some(uri)), Some(expected));
        }
        assert_eq!(judged(entry, None), None, "a template in a list is judged by its name");
    }

    #[test]
    fn a_resource_has_one_reading_by_the_uri_that_it_is_listed_by() {
        for listed in ["note://a/b", "note://a/b%2Fc", "note://a/../b", "note://a/%252E%252E/b"] {
            let resource = Resource::new(listed, "a");
            let own = Some((listed.to_owned(), None, false));
            assert_eq!(judged(Entry::Resource(&resource), None), own);
            assert_eq!(judged(Entry::Resource(&resource), Some(listed)), own);
        }
        let resource = Resource::new("note://a/~b", "a");
        let entry = Entry::Resource(&resource);
        assert_eq!(judged(entry, Some("NOTE://a/%7Eb")), Some(("note://a/~b".into(), None, false)));
        // The resource of another URI has the readings of that one.
        let other = Some(("note://a/b%2Fc".into(), Some("note://a/b/c".into()), false));
        assert_eq!(judged(entry, Some("note://a/b%2fc")), other);
        assert!(judged(entry, Some("note://a/../~b")).unwrap().2);
    }

    #[test]
    fn what_is_unclear_is_hidden_whatever_the_gates_decide() {
        let mut gates = Gates::default();
        gates.push(|_: &GateRequest<'_>| Decision::Allow);
        let (peer, extensions) = (Peer::new(Revision::LATEST), Extensions::new());
        let scope = Scope::new(&peer, None, &extensions);
        let template = ResourceTemplate::new("note://{+path}", "notes");
        let entry = Entry::Template(&template);
        for (uri, decision) in [
            ("note://a/b", Decision::Allow),
            ("note://a/b%2Fc", Decision::Allow),
            ("note://a/..%2Fb", Decision::Hide),
            ("note://a/../b", Decision::Hide),
        ] {
            assert_eq!(gates.watching(&scope, entry, None, uri), decision, "{uri}");
            assert_eq!(gates.shows(&scope, entry, None, Some(uri)), decision == Decision::Allow, "{uri}");
        }
    }

    #[test]
    fn each_reading_of_a_uri_is_judged_as_itself() {
        let mut gates = Gates::default();
        gates.push(|request: &GateRequest<'_>| match request.name().contains("/secret") {
            true => Decision::Hide,
            false => Decision::Allow,
        });
        let (peer, extensions) = (Peer::new(Revision::LATEST), Extensions::new());
        let scope = Scope::new(&peer, None, &extensions);
        let template = ResourceTemplate::new("note://{+path}", "notes");
        for (uri, is_shown) in
            [("note://a%2Fsecret", false), ("note://a/%2573ecret", false), ("note://a%2Fopen", true)]
        {
            assert_eq!(gates.shows(&scope, Entry::Template(&template), None, Some(uri)), is_shown, "{uri}");
        }
    }

    /// Rules are asked again by the number of their own decision only.
    #[test]
    fn a_rule_is_noted_for_the_rules_that_have_it() {
        let (peer, extensions) = (Peer::new(Revision::LATEST), Extensions::new());
        let template = ResourceTemplate::new("note://{+path}", "notes");
        let scope = Scope::new(&peer, None, &extensions);
        let request = GateRequest::new(scope, Access::Call, Entry::Template(&template));
        assert_eq!(request.noted_rule(1), None);
        request.note_rule(1, Some(3));
        assert_eq!((request.noted_rule(1), request.noted_rule(2)), (Some(Some(3)), None));
        request.note_rule(2, None);
        assert_eq!((request.noted_rule(1), request.noted_rule(2)), (None, Some(None)));
    }
}
