use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::OnceLock,
    time::Duration,
};

use pintle_types::schema::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::condition::Condition;
use crate::{
    server::{Access, ListKind, Principal, judged::arguments::JudgedArguments, mounts::transform::pattern},
    uri::{Uri, UriPattern},
};

/// The limit of the arguments that a rule is about.
const MAX_ARGUMENTS: usize = 64;

/// One rule: conditions, all of which a request has to meet, and what then happens. A condition that is left out is met.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// A name for explanations and the audit log.
    pub name: Option<String>,
    /// Patterns of names of tools, in which `*` is any text. A rule with none of `tools`, `prompts`, `resources` and `methods` is for all
    /// entries.
    pub tools: Vec<String>,
    /// Patterns of names of prompts.
    pub prompts: Vec<String>,
    /// Patterns of URIs of resources, and of URI templates.
    pub resources: Vec<String>,
    /// Patterns of names of methods that the protocol does not define. Those of tasks are not judged: a task belongs to its caller.
    pub methods: Vec<String>,
    /// Patterns of names of backends.
    pub backends: Vec<String>,
    /// Patterns of names of principals; also `@local`, `@anonymous` and `@named`.
    pub principals: Vec<String>,
    /// Rights, all of which the caller has to have.
    pub rights: Vec<String>,
    /// Hints of the tool. What a tool does not state is as the protocol defines: not read-only, destructive, not idempotent, open.
    pub hints: HintMatch,
    /// Arguments of a call, by name, or by a path of names with dots: a pattern for texts, an equal value, or tests.
    pub arguments: BTreeMap<String, Condition>,
    /// The decision. A rule without one only limits the rate, and the next rules are applied too.
    pub decision: Option<RuleDecision>,
    /// The reason of a denial, or the question of a confirmation.
    pub reason: Option<String>,
    /// The number of calls that are allowed.
    pub rate: Option<RateLimit>,
    /// The patterns of `resources`, compiled.
    #[serde(skip)]
    #[schemars(skip)]
    uri_patterns: UriPatterns,
}

/// Patterns of URIs that are compiled when they are first needed. They depend on the text of a rule, so rules are not compared by them.
#[derive(Clone, Debug, Default)]
struct UriPatterns(OnceLock<Box<[UriPattern]>>);

impl UriPatterns {
    fn of(&self, patterns: &[String]) -> &[UriPattern] {
        self.0.get_or_init(|| patterns.iter().map(|pattern| UriPattern::new(pattern)).collect())
    }
}

impl PartialEq for UriPatterns {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The hints that a [`Rule`] is for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct HintMatch {
    /// Whether the tool changes nothing.
    pub read_only: Option<bool>,
    /// Whether the tool may destroy something.
    pub destructive: Option<bool>,
    /// Whether a repeated call has no further effect.
    pub idempotent: Option<bool>,
    /// Whether the tool interacts with an open world.
    pub open_world: Option<bool>,
}

/// The decision of a [`Rule`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum RuleDecision {
    /// The request is allowed.
    Allow,
    /// The user has to confirm the request.
    Confirm,
    /// The request is denied, and the entry stays in lists.
    Deny,
    /// The entry does not exist for the caller.
    Hide,
}

impl RuleDecision {
    /// Returns the name in the audit log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Confirm => "confirm",
            Self::Deny => "deny",
            Self::Hide => "hide",
        }
    }
}

/// A limit of calls in a time.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// The number of calls.
    pub calls: u32,
    /// The seconds in which so many calls are allowed.
    pub seconds: u32,
    /// The calls that are counted separately. Default: those of each principal.
    #[serde(default)]
    pub per: RateScope,
}

/// The calls that a [`RateLimit`] counts separately.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum RateScope {
    /// The calls of each principal.
    #[default]
    Principal,
    /// The calls of each tool, by all principals.
    Tool,
    /// The calls of each tool by each principal.
    PrincipalAndTool,
    /// All calls.
    All,
}

impl RateLimit {
    pub(super) fn window(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1).into())
    }
}

/// A request, as far as rules look at it.
#[derive(Clone, Copy)]
pub(super) struct RuleSubject<'a> {
    pub(super) identity: Principal<'a>,
    pub(super) has: &'a dyn Fn(&str) -> bool,
    pub(super) access: Access,
    /// The list that the entry is in; `None` for a method.
    pub(super) list: Option<ListKind>,
    pub(super) name: &'a str,
    /// The name of a resource or template, as patterns of URIs compare it.
    pub(super) uri: Option<&'a Uri>,
    pub(super) backend: Option<&'a str>,
    pub(super) hints: Option<&'a ToolAnnotations>,
    pub(super) upstream: Option<&'a str>,
    pub(super) arguments: Option<&'a JudgedArguments<'a>>,
}

/// Whether a request meets the conditions of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Match {
    Yes,
    /// The first condition that is not met.
    No(&'static str),
    /// All but those on arguments, which a list does not have.
    Depends,
    /// Why its arguments cannot be judged. All other conditions are met.
    Unjudgeable(String),
}

fn any_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern::matches(pattern, name))
}

impl Rule {
    /// Returns a number that other rules do not have.
    pub(super) fn fingerprint(&self) -> u64 {
        // What is compiled is no part of the text.
        let text = format!("{:?}", Self { uri_patterns: UriPatterns::default(), ..self.clone() });
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn matches(&self, subject: &RuleSubject<'_>) -> Match {
        let is_of_backend = |backend: &str| any_matches(&self.backends, backend);
        let unmet = if !self.matches_entry(subject) {
            "the entry"
        } else if !(self.backends.is_empty() || subject.backend.is_some_and(is_of_backend)) {
            "`backends`"
        } else if !(self.principals.is_empty() || self.matches_principal(subject.identity)) {
            "`principals`"
        } else if !self.rights.iter().all(|right| (subject.has)(right)) {
            "`rights`"
        } else if !(self.hints == HintMatch::default() || self.hints.matches(subject)) {
            "`hints`"
        } else {
            ""
        };
        if !unmet.is_empty() {
            return Match::No(unmet);
        }
        if self.arguments.is_empty() {
            return Match::Yes;
        }
        match (subject.access, subject.arguments) {
            (Access::List, _) => Match::Depends,
            (_, Some(arguments)) => self.matches_arguments(arguments),
            _ => Match::No("`arguments`"),
        }
    }

    /// Whether arguments meet the conditions: all values if the rule allows, one if it does anything else.
    fn matches_arguments(&self, arguments: &JudgedArguments<'_>) -> Match {
        let mut found = Match::Yes;
        for (path, condition) in &self.arguments {
            match arguments.read(path, &condition.types()) {
                Ok(reading) if condition.is_met(&reading, self.decision == Some(RuleDecision::Allow)) => {}
                Ok(_) => return Match::No("`arguments`"),
                Err(fault) => found = Match::Unjudgeable(fault),
            }
        }
        found
    }

    fn matches_entry(&self, subject: &RuleSubject<'_>) -> bool {
        let patterns = match subject.list {
            Some(ListKind::Tools) => &self.tools,
            Some(ListKind::Prompts) => &self.prompts,
            Some(ListKind::Resources | ListKind::Templates) => &self.resources,
            None => &self.methods,
        };
        let all = [&self.tools, &self.prompts, &self.resources, &self.methods];
        all.into_iter().all(Vec::is_empty)
            || match subject.uri {
                Some(uri) => self.uri_patterns.of(patterns).iter().any(|pattern| uri.matches(pattern)),
                None => any_matches(patterns, subject.name),
            }
    }

    fn matches_principal(&self, identity: Principal<'_>) -> bool {
        self.principals.iter().any(|principal| match (principal.as_str(), identity) {
            ("@local", identity) => identity == Principal::Local,
            ("@anonymous", identity) => identity == Principal::Anonymous,
            ("@named", identity) => matches!(identity, Principal::Named(_)),
            (pattern, Principal::Named(name)) => pattern::matches(pattern, name),
            _ => false,
        })
    }

    /// Returns what is wrong with the rule.
    pub(super) fn fault(&self) -> Option<String> {
        let known = ["@local", "@anonymous", "@named"];
        let unknown = self.principals.iter().find(|it| it.starts_with('@') && !known.contains(&it.as_str()));
        if let Some(unknown) = unknown {
            return Some(format!(
                "`{unknown}` is not a kind of principal: use one of `{}`",
                known.join("`, `")
            ));
        }
        if self.decision.is_none() && self.rate.is_none() {
            return Some("it decides nothing: give it a `decision` or a `rate`".to_owned());
        }
        if self.rate.as_ref().is_some_and(|rate| rate.calls == 0) {
            return Some("`calls` is 0: use the decision `deny` instead".to_owned());
        }
        if self.arguments.len() > MAX_ARGUMENTS {
            return Some(format!("it is about more than {MAX_ARGUMENTS} arguments: use several rules"));
        }
        self.arguments.iter().find_map(|(path, condition)| condition.fault(path))
    }
}

impl HintMatch {
    fn matches(self, subject: &RuleSubject<'_>) -> bool {
        if subject.list != Some(ListKind::Tools) {
            return false;
        }
        let hint = |of: fn(&ToolAnnotations) -> Option<bool>| subject.hints.and_then(of);
        let read_only = hint(|hints| hints.read_only_hint).unwrap_or(false);
        // What changes nothing destroys nothing, and may be repeated.
        let destructive = !read_only && hint(|hints| hints.destructive_hint).unwrap_or(true);
        let idempotent = read_only || hint(|hints| hints.idempotent_hint).unwrap_or(false);
        let open_world = hint(|hints| hints.open_world_hint).unwrap_or(true);
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        is(self.read_only, read_only)
            && is(self.destructive, destructive)
            && is(self.idempotent, idempotent)
            && is(self.open_world, open_world)
    }
}
