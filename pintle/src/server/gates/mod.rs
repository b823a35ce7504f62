//! Rules: a gate that is configured.

pub(crate) mod audit;
pub(crate) mod condition;
mod rate_blocks;
mod rates;
pub(crate) mod rule;
mod shared_rates;

use std::{
    fmt,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use schemars::JsonSchema;
use serde::Deserialize;

use self::{
    audit::AuditRecord,
    rates::{Rates, rule_keys},
    rule::{Match, Rule, RuleDecision, RuleSubject},
};
use super::{core::gate::seen_states::SeenStates, judged::arguments::JudgedArguments};
use crate::{
    Error, Result,
    server::{Access, Decision, Entry, Gate, GateRequest, ListKind, Principal, store::Store},
    uri::Uri,
};

/// The rules of a [`Rules`] gate, in their order. They are read from JSON, or from any format that serde reads.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSet {
    /// The rules. The first one that is met and has a decision decides.
    pub rules: Vec<Rule>,
    /// The decision if no rule decides. Default: `hide`.
    pub default: Option<RuleDecision>,
}

/// A gate of rules that a file can have: who may use what, by name, hints, principal, rights and arguments; what the user has to
/// confirm; and how often.
///
/// Cheap to clone; all clones have the same rules, which can be [replaced](Self::replace) while the server runs.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pintle::{Server, server::{Rules, tool}};
///
/// let rules = Rules::new(serde_json::from_str(
///     r#"{"rules": [
///         {"tools": ["git_*"], "arguments": {"force": true}, "decision": "deny", "reason": "do not force"},
///         {"tools": ["git_*"], "principals": ["@local", "ann"], "decision": "allow"}
///     ]}"#,
/// )?)?;
/// let server = Server::new("desk", "1.0.0")
///     .tool(tool("git_push", || async { "pushed" }))
///     .tool(tool("rm", || async { "removed" }))
///     .gate(rules);
/// # #[cfg(feature = "client")] {
/// let desk = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// assert_eq!(desk.call_tool("git_push", ()).await?.text(), "pushed");
/// let refused = desk.call_tool("git_push", serde_json::json!({"force": true})).await.unwrap_err();
/// assert!(refused.to_string().contains("do not force"));
/// assert!(desk.call_tool("rm", ()).await.unwrap_err().to_string().contains("no such tool"));
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Rules(Arc<RulesInner>);

struct RulesInner {
    current: RwLock<Arc<CurrentRules>>,
    audit: Option<Box<Audit>>,
    /// The store of rates that are shared.
    rates: OnceLock<(Arc<dyn Store>, Arc<str>)>,
    seen: Arc<SeenStates>,
}

type Audit = dyn Fn(&AuditRecord<'_>) + Send + Sync;

#[derive(Debug)]
struct CurrentRules {
    /// A number that no other rules of this process have.
    id: u64,
    set: RuleSet,
    /// The keys of the rules, by which their calls are counted.
    keys: Vec<String>,
    rates: Arc<Rates>,
}

/// The rule that decides about a request, and why: see [`Rules::explain`].
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The decision. Limits of rates are not counted.
    pub decision: Decision,
    /// The name or number of the rule that decides; `None` for the default.
    pub rule: Option<String>,
    /// The rules before it, and why each does not decide.
    pub passed: Vec<(String, String)>,
}

impl Rules {
    /// Creates a gate.
    ///
    /// # Errors
    ///
    /// A rule is wrong; the error has its name or number.
    pub fn new(set: RuleSet) -> Result<Self> {
        Self::with_audit(set, None)
    }

    /// Creates a gate that reports every decision about a completion, read, call or subscription to a function, which must not block.
    ///
    /// # Errors
    ///
    /// A rule is wrong; the error has its name or number.
    pub fn audited(set: RuleSet, audit: impl Fn(&AuditRecord<'_>) + Send + Sync + 'static) -> Result<Self> {
        Self::with_audit(set, Some(Box::new(audit)))
    }

    fn with_audit(set: RuleSet, audit: Option<Box<Audit>>) -> Result<Self> {
        let current = RwLock::new(Arc::new(CurrentRules::new(set, Arc::new(Rates::new(None)))?));
        Ok(Self(Arc::new(RulesInner { current, audit, rates: OnceLock::new(), seen: Arc::default() })))
    }

    /// Counts the calls of the rates together with the other processes that have the same store, such as `pintle_redis::Redis`, and the
    /// same rules. The first store stays.
    ///
    /// Calls are taken in blocks of a sixteenth of a limit, in the background and with three requests, so that most need no request to the store. A limit may be exceeded by one
    /// block of each process for a moment, which is missing afterwards. While the store cannot be reached, each process applies the whole
    /// limit by itself.
    ///
    /// It also keeps which states of servers behind were seen: a call with one that was is counted again, at whatever process, and so is
    /// one while the store cannot be reached.
    ///
    /// ```
    /// use pintle::server::{Rules, store::MemoryStore};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rules = Rules::new(serde_json::from_str(
    ///     r#"{"rules": [{"rate": {"calls": 300, "seconds": 60}, "decision": "allow"}]}"#,
    /// )?)?;
    /// // In production: `pintle_redis::Redis::connect(url).await?`.
    /// let rules = rules.share_rates(MemoryStore::new());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn share_rates(self, store: impl Store) -> Self {
        self.share_part(Arc::new(store), "".into())
    }

    /// Counts the calls as [`share_rates`](Self::share_rates) does, apart from those of other rules that share the same store: rules of
    /// several servers may have the same names.
    #[must_use]
    pub fn share_rates_of(self, server: &str, store: impl Store) -> Self {
        // The buckets without a server begin with a digit or `=`.
        self.share_part(Arc::new(store), format!("server {}:{server} ", server.len()).into())
    }

    fn share_part(self, store: Arc<dyn Store>, part: Arc<str>) -> Self {
        if self.0.rates.set((store.clone(), part.clone())).is_ok() {
            self.0.seen.share(store.clone(), part.clone());
            let set = self.current().set.clone();
            let next = Arc::new(CurrentRules::checked(set, Arc::new(Rates::new(Some((store, part))))));
            *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        }
        self
    }

    /// Replaces the rules. The calls that a rule has counted stay counted, if the next one of its name has the same rate; a rule without a
    /// name has to stay as it is for that. Notify clients with [`Server::tools_changed`](crate::server::Server::tools_changed)
    /// and its kin.
    ///
    /// # Errors
    ///
    /// A rule is wrong. Then the rules stay as they are.
    pub fn replace(&self, set: RuleSet) -> Result<()> {
        let current = self.current();
        if current.set == set {
            return Ok(());
        }
        let next = Arc::new(CurrentRules::new(set, current.rates.clone())?);
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Returns which rule decides about a call of an entry with these arguments, a JSON object, and why. Nothing is counted. An argument
    /// that is omitted has the default of the schema, as if it were sent.
    pub fn explain(
        &self,
        caller: Principal<'_>,
        rights: impl Fn(&str) -> bool,
        backend: Option<&str>,
        entry: Entry<'_>,
        arguments: &str,
    ) -> Explanation {
        let tool = match entry {
            Entry::Tool(tool) => Some(tool),
            _ => None,
        };
        let arguments = JudgedArguments::new(arguments, &[], tool.map(|tool| &*tool.input_schema));
        let list = ListKind::of_entry(entry);
        let uri = named_uri(list, entry.name());
        self.explained(&RuleSubject {
            identity: caller,
            has: &|right| caller != Principal::Anonymous && rights(right),
            access: Access::Call,
            list,
            name: entry.name(),
            uri: uri.as_ref(),
            backend,
            hints: tool.and_then(|tool| tool.annotations.as_ref()),
            upstream: None,
            arguments: Some(&arguments),
        })
    }

    /// Returns which rule decides about a request, and why: what [`Gate::decide`] decides. Nothing is counted, and nothing is reported.
    pub fn explain_request(&self, request: &GateRequest<'_>) -> Explanation {
        with_subject(request, |subject| self.explained(subject))
    }

    fn explained(&self, subject: &RuleSubject<'_>) -> Explanation {
        let current = self.current();
        let mut passed = Vec::new();
        let decided = current.find(subject, |number, rule, reason| {
            passed.push((label(number, rule), reason.to_owned()));
        });
        let rule = decided.rule.and_then(|number| current.label(number));
        Explanation { decision: current.made(&decided, subject), rule, passed }
    }

    fn current(&self) -> Arc<CurrentRules> {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports a decision, and the rule that made it. Lists are not reported.
    fn report(
        &self,
        request: &GateRequest<'_>,
        subject: &RuleSubject<'_>,
        decision: &'static str,
        (current, rule): (&CurrentRules, Option<usize>),
    ) {
        let Some(audit) = self.0.audit.as_ref() else { return };
        let access = match subject.access {
            Access::List => return,
            Access::Subscribe => "subscribe",
            Access::Complete => "complete",
            Access::Read => "read",
            Access::Call => "call",
        };
        request.set_reported();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        audit(&AuditRecord {
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            principal: match subject.identity {
                Principal::Local => "@local",
                Principal::Anonymous => "@anonymous",
                Principal::Named(name) => name,
            },
            access,
            name: subject.name,
            backend: subject.backend,
            upstream: subject.upstream,
            decision,
            rule: rule.and_then(|number| current.label(number)),
            repeated: request.is_replayed,
        });
    }
}

/// Returns the URI that an entry is named by.
fn named_uri(list: Option<ListKind>, name: &str) -> Option<Uri> {
    matches!(list, Some(ListKind::Resources | ListKind::Templates)).then(|| Uri::of(name))
}

/// Runs a function with a request as rules see it.
fn with_subject<T>(request: &GateRequest<'_>, run: impl FnOnce(&RuleSubject<'_>) -> T) -> T {
    let list = ListKind::of_entry(request.entry);
    let uri = named_uri(list, request.name());
    run(&RuleSubject {
        identity: request.identity(),
        has: &|right| request.has(right),
        access: request.access,
        list,
        name: request.name(),
        uri: uri.as_ref(),
        backend: request.backend,
        hints: request.hints(),
        upstream: request.upstream,
        arguments: request.arguments(),
    })
}

impl Gate for Rules {
    fn decide(&self, request: &GateRequest<'_>) -> Decision {
        let current = self.current();
        with_subject(request, |subject| {
            let decided = current.find(subject, |_, _, _| {});
            request.note_rule(current.id, decided.rule);
            let decision = decided.decision(&current);
            // What is allowed is reported when it is counted, once per call. What cannot be confirmed is not counted.
            let is_counted = match decision {
                RuleDecision::Allow => true,
                RuleDecision::Confirm => !request.is_unconfirmed(),
                _ => false,
            } && matches!(subject.access, Access::Call | Access::Read);
            if !is_counted && !request.is_repeated {
                self.report(request, subject, decision.name(), (&current, decided.rule));
            }
            current.made(&decided, subject)
        })
    }

    fn reads_argument(&self, name: &str) -> bool {
        let current = self.current();
        let mut paths = current.set.rules.iter().flat_map(|rule| rule.arguments.keys());
        // A header may have the name of a member of an argument.
        let within = |text: &str| format!(".{}.", text.to_ascii_lowercase());
        paths.any(|path| within(path).contains(&within(name)))
    }

    fn count(&self, request: &GateRequest<'_>) -> Option<Duration> {
        let current = self.current();
        with_subject(request, |subject| {
            let noted = request.noted_rule(current.id);
            let mut decided = noted.unwrap_or_else(|| current.find(subject, |_, _, _| {}).rule);
            let mut decision = current.decision_of(decided).name();
            let last = decided.unwrap_or(current.set.rules.len());
            let mut wait = None;
            let rules = current.set.rules.iter().zip(&current.keys).enumerate();
            for (number, (rule, key)) in rules.take(last.saturating_add(1)) {
                if let Some(limit) = &rule.rate
                    && matches!(rule.matches(subject), Match::Yes | Match::Unjudgeable(_))
                    && let Some(longer) = current.rates.take(key, limit, subject)
                {
                    (wait, decided) = (wait.max(Some(longer)), Some(number));
                    decision = "limit";
                }
            }
            self.report(request, subject, decision, (&current, decided));
            wait
        })
    }

    fn refused(&self, request: &GateRequest<'_>) -> bool {
        let current = self.current();
        with_subject(request, |subject| {
            self.report(request, subject, RuleDecision::Deny.name(), (&current, None));
        });
        request.is_reported()
    }

    fn seen(&self) -> Option<Arc<SeenStates>> {
        Some(self.0.seen.clone())
    }
}

/// The rule that decides about a request; none if the default does.
struct DecidedRule {
    rule: Option<usize>,
    /// Why the arguments that it is about cannot be judged.
    fault: Option<String>,
}

impl DecidedRule {
    fn decision(&self, rules: &CurrentRules) -> RuleDecision {
        match self.fault {
            Some(_) => RuleDecision::Deny,
            None => rules.decision_of(self.rule),
        }
    }
}

impl CurrentRules {
    fn new(set: RuleSet, rates: Arc<Rates>) -> Result<Self> {
        let numbered = set.rules.iter().enumerate();
        let faults: Vec<_> = numbered
            .filter_map(|(number, rule)| Some(format!("{}: {}", label(number, rule), rule.fault()?)))
            .collect();
        match faults.is_empty() {
            true => Ok(Self::checked(set, rates)),
            false => Err(Error::misuse(faults.join("\n"))),
        }
    }

    fn checked(set: RuleSet, rates: Arc<Rates>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let keys = rule_keys(&set.rules);
        Self { id: LAST.fetch_add(1, Ordering::Relaxed), set, keys, rates }
    }

    fn label(&self, number: usize) -> Option<String> {
        self.set.rules.get(number).map(|rule| label(number, rule))
    }

    /// Returns the decision of a rule, or that for requests about which none decides.
    fn decision_of(&self, number: Option<usize>) -> RuleDecision {
        let rule = number.and_then(|number| self.set.rules.get(number));
        rule.and_then(|rule| rule.decision).or(self.set.default).unwrap_or(RuleDecision::Hide)
    }

    /// Returns the decision about a request by a rule, or by the default.
    fn made(&self, decided: &DecidedRule, subject: &RuleSubject<'_>) -> Decision {
        let reason = || decided.rule.and_then(|number| self.set.rules.get(number)?.reason.clone());
        match decided.decision(self) {
            RuleDecision::Allow => Decision::Allow,
            RuleDecision::Hide => Decision::Hide,
            RuleDecision::Deny => {
                let reason = decided.fault.clone().or_else(reason);
                Decision::Deny(reason.unwrap_or_else(|| "a rule of this server forbids it".to_owned()))
            }
            RuleDecision::Confirm => Decision::Confirm(question(reason(), subject)),
        }
    }

    /// Returns the rule that decides about a request. `pass` is called for each rule before it.
    fn find(&self, subject: &RuleSubject<'_>, mut pass: impl FnMut(usize, &Rule, &str)) -> DecidedRule {
        for (number, rule) in self.set.rules.iter().enumerate() {
            let Some(decision) = rule.decision else {
                pass(number, rule, "it only limits the rate");
                continue;
            };
            match rule.matches(subject) {
                Match::No(condition) => pass(number, rule, condition),
                // An entry is listed if some arguments are allowed.
                Match::Depends if matches!(decision, RuleDecision::Deny | RuleDecision::Hide) => {
                    pass(number, rule, "`arguments`");
                }
                Match::Yes | Match::Depends => return DecidedRule { rule: Some(number), fault: None },
                Match::Unjudgeable(fault) => {
                    // Nothing may be known of an entry that is in no list.
                    let listed = self.in_list(subject);
                    return match self.decision_of(listed) {
                        RuleDecision::Hide => DecidedRule { rule: listed, fault: None },
                        _ => DecidedRule { rule: Some(number), fault: Some(fault) },
                    };
                }
            }
        }
        DecidedRule { rule: None, fault: None }
    }

    /// Returns the number of the rule that decides whether the entry is in lists.
    fn in_list(&self, subject: &RuleSubject<'_>) -> Option<usize> {
        self.find(&RuleSubject { access: Access::List, ..*subject }, |_, _, _| {}).rule
    }
}

/// The number of characters of the arguments that a question shows.
const SHOWN: usize = 2000;

/// Returns a question with the arguments that the user confirms.
fn question(reason: Option<String>, subject: &RuleSubject<'_>) -> String {
    let mut question = reason.unwrap_or_else(|| format!("Allow `{}`?", subject.name));
    let arguments = subject.arguments.and_then(JudgedArguments::shown);
    if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
        let text = serde_json::to_string(&arguments).unwrap_or_default();
        let shown: String = text.chars().take(SHOWN).collect();
        let more = text.chars().count().saturating_sub(SHOWN);
        question += &format!("\n\n`{}` with {shown}", subject.name);
        if more > 0 {
            question += &format!("… and {more} characters more");
        }
    }
    question
}

fn label(number: usize, rule: &Rule) -> String {
    rule.name.clone().unwrap_or_else(|| format!("rule {}", number + 1))
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.current().set).finish()
    }
}
