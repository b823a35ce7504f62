#[cfg(test)]
mod hostile_names;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::{
    server::{
        Cx, ListKind, Lookup, Outcome, PageRequest, ProvidedEntry, Provider, ProviderInfo, ProviderPage,
        ReportPart, RequestError, Scope, Target, Watch,
    },
    types::{
        RawObject, method,
        schema::{Prompt, Tool},
    },
};
use ring::digest::{SHA256, digest};
use serde_json::value::to_raw_value;
use tokio::time::Instant;

use super::whole_list::{LIST_TIMEOUT, MAX_PAGES};

/// The longest name that all hosts accept.
pub(super) const MAX_NAME: usize = 64;
/// The hexadecimal digits at the end of a name that was shortened.
const DIGITS: usize = 8;
/// The limits of the entries of a backend that are known by their shortened names, and of their bytes.
const MAX_KNOWN: usize = 10_000;
const MAX_KNOWN_BYTES: usize = 16 << 20;
/// The time between two lists that are read to look for a shortened name.
const LOOK_UP_INTERVAL: Duration = Duration::from_secs(1);

/// Returns whether a tool or prompt is offered by this name: every host accepts it, and it does not end as shortened names do.
pub(super) fn is_kept(name: &str) -> bool {
    is_accepted(name) && !may_be_shortened(name)
}

/// Returns whether every host accepts this name of a tool or prompt.
fn is_accepted(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_accepted_byte)
}

fn is_accepted_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns a name that every host accepts. It depends on nothing but the name: one that is changed ends with a part of its hash, and
/// no other does, so that none can imitate it.
pub(super) fn accepted(name: &str) -> Cow<'_, str> {
    if is_kept(name) {
        return name.into();
    }
    let kept = name.chars().map(|c| if c.is_ascii() && is_accepted_byte(c as u8) { c } else { '_' });
    let kept: String = kept.take(MAX_NAME - DIGITS - 1).collect();
    let hash: String = digest(&SHA256, name.as_bytes())
        .as_ref()
        .iter()
        .take(DIGITS / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{kept}_{hash}").into()
}

/// Returns whether a name ends as shortened ones do.
fn may_be_shortened(name: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    name.rsplit_once('_').is_some_and(|(_, end)| end.len() == DIGITS && end.chars().all(is_digit))
}

/// A provider whose tools and prompts have names that every host accepts.
///
/// A name that is too long, has other characters, or ends as such a replacement does, is replaced by one with a hash of it. No two entries
/// have the same name: of those that would, the later is left out.
pub(super) struct HostNames<P> {
    provider: P,
    /// The entries with another name, by that name.
    known: Mutex<ShortenedEntries>,
    /// When a list was last read to look for a shortened name. Held meanwhile, so that others wait for what is found.
    looked_up: tokio::sync::Mutex<Option<Instant>>,
    /// Whether a name was looked for that is none of the known ones.
    has_unknown: AtomicBool,
    report: Box<ReportRenamed>,
}

/// A function that is called with the old and the new name of an entry.
type ReportRenamed = dyn Fn(&str, &str) + Send + Sync;

/// The entries with another name, by that name. Those of a backend that has too many are forgotten, and read again.
#[derive(Default)]
struct ShortenedEntries {
    entries: HashMap<(ListKind, String), ShortenedEntry>,
    bytes: usize,
}

impl ShortenedEntries {
    fn insert(&mut self, key: (ListKind, String), shortened: ShortenedEntry) {
        let bytes = key.1.len() + shortened.inner.len() + shortened.entry.as_str().len();
        self.remove(&key);
        if self.entries.len() >= MAX_KNOWN || self.bytes + bytes > MAX_KNOWN_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.entries.insert(key, shortened);
    }

    fn remove(&mut self, key: &(ListKind, String)) {
        if let Some(before) = self.entries.remove(key) {
            self.bytes -= key.1.len() + before.inner.len() + before.entry.as_str().len();
        }
    }
}

/// An entry with another name than the provider has for it.
#[derive(Clone)]
struct ShortenedEntry {
    inner: String,
    entry: RawObject,
}

impl<P: Provider> HostNames<P> {
    /// Renames entries of a provider. `report` is called with the old and the new name, once for each.
    pub(super) fn new(provider: P, report: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        Self {
            provider,
            known: Mutex::default(),
            looked_up: tokio::sync::Mutex::default(),
            has_unknown: AtomicBool::new(false),
            report: Box::new(report),
        }
    }

    fn known(&self) -> MutexGuard<'_, ShortenedEntries> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shortened(&self, target: &Target<'_>) -> Option<ShortenedEntry> {
        self.known().entries.get(&(list_of(target)?, target.name().to_owned())).cloned()
    }

    /// Returns an entry of a list with its new name; `None` if another one has that name.
    fn outer_entry(&self, list: ListKind, entry: RawObject) -> Option<RawObject> {
        let Ok(Some(inner)) = entry.decode_member::<String>("name") else { return Some(entry) };
        let outer = accepted(&inner);
        let mut known = self.known();
        let key = (list, outer.into_owned());
        if key.1 == inner {
            return Some(entry);
        }
        let mut renamed = entry.with("name", &to_raw_value(&key.1).ok()?);
        if renamed.get("title").is_none() {
            renamed = renamed.with("title", &to_raw_value(&inner).ok()?);
        }
        match known.entries.get(&key) {
            Some(other) if other.inner != inner => return None,
            Some(_) => {}
            None => (self.report)(&inner, &key.1),
        }
        known.insert(key, ShortenedEntry { inner, entry: renamed.clone() });
        Some(renamed)
    }

    /// Returns a page of a list, with the new names.
    async fn page(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let mut page = self.provider.list(cx, list, page).await?;
        if matches!(list, ListKind::Tools | ListKind::Prompts) {
            page.entries =
                page.entries.into_iter().filter_map(|entry| self.outer_entry(list, entry)).collect();
        }
        Ok(page)
    }

    /// Reads a list, if that was not just done, so that shortened names of it are known.
    async fn look_up(&self, cx: &Cx, list: ListKind) -> Result<(), RequestError> {
        let mut looked_up = self.looked_up.lock().await;
        if looked_up.is_some_and(|at| at.elapsed() < LOOK_UP_INTERVAL) {
            return Ok(());
        }
        let reading = async {
            let mut page = PageRequest::first();
            for _ in 0..MAX_PAGES {
                page.cursor =
                    self.page(cx.clone().with_params(RawObject::empty()), list, page.clone()).await?.cursor;
                if page.cursor.is_none() {
                    break;
                }
            }
            Ok(())
        };
        let read = tokio::time::timeout(LIST_TIMEOUT, reading).await;
        *looked_up = Some(Instant::now());
        read.unwrap_or(Ok(()))
    }

    /// Returns a call with the name that the provider has.
    fn inner_call(&self, cx: Cx) -> Cx {
        let Some(found) = cx.target().and_then(|target| self.shortened(&target)) else { return cx };
        let Ok(name) = to_raw_value(&found.inner) else { return cx };
        let params = cx.params();
        // Only a completion names an entry in `ref`. Of other requests it is any member.
        let reference = match cx.method() == method::COMPLETION_COMPLETE {
            true => params.decode_member::<RawObject>("ref").ok().flatten(),
            false => None,
        };
        let params = match reference.map(|reference| to_raw_value(&reference.with("name", &name))) {
            Some(Ok(reference)) => params.with("ref", &reference),
            Some(Err(_)) => return cx,
            None => params.with("name", &name),
        };
        cx.with_params(params)
    }
}

/// Returns the list of a target that has a name, and not a URI.
fn list_of(target: &Target<'_>) -> Option<ListKind> {
    match target {
        Target::Tool(_) => Some(ListKind::Tools),
        Target::Prompt(_) => Some(ListKind::Prompts),
        _ => None,
    }
}

fn inner_target(list: ListKind, found: &ShortenedEntry) -> Target<'static> {
    match list {
        ListKind::Tools => Target::Tool(found.inner.clone().into()),
        _ => Target::Prompt(found.inner.clone().into()),
    }
}

impl ShortenedEntry {
    fn provided(&self, list: ListKind) -> Option<ProvidedEntry> {
        match list {
            ListKind::Tools => self.entry.decode::<Tool>().ok().map(Into::into),
            _ => self.entry.decode::<Prompt>().ok().map(Into::into),
        }
    }
}

impl<P: Provider> Provider for HostNames<P> {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        let mut info = self.provider.info(caller);
        (info.is_whole_server, info.may_be_stale) = (false, true);
        info
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let has_names = matches!(list, ListKind::Tools | ListKind::Prompts);
        if page.is_refresh() && has_names && self.has_unknown.load(Ordering::Acquire) {
            self.look_up(&cx, list).await?;
            self.has_unknown.store(false, Ordering::Release);
            return Ok(ProviderPage::default());
        }
        self.page(cx, list, page).await
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let Some(list) = list_of(target) else { return self.provider.find(scope, target) };
        if is_kept(target.name()) {
            return self.provider.find(scope, target);
        }
        if !is_accepted(target.name()) {
            return Lookup::None;
        }
        let Some(shortened) = self.shortened(target) else {
            self.has_unknown.store(true, Ordering::Release);
            return Lookup::Stale(None);
        };
        let inner = self.provider.find(scope, &inner_target(list, &shortened));
        inner.and_then(|inner| Some(inner.shown_as(shortened.provided(list)?)))
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        self.provider.handle(self.inner_call(cx)).await
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        let mut report = self.provider.report(part);
        if let ReportPart::Names(ListKind::Tools | ListKind::Prompts) = part {
            report.iter_mut().for_each(|name| *name = accepted(name).into_owned());
        }
        report
    }

    fn watch(&self) -> &dyn Watch {
        self.provider.watch()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, io};

    use pintle::{
        Client, Server,
        server::{Mount, Rules, tool},
    };
    use pintle_relay::Relay;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_changed_only_if_a_host_would_refuse_them_and_always_in_the_same_way() {
        for name in ["git_push", "a", "A-b_9", "at_1234567", &"x".repeat(64)] {
            assert_eq!(accepted(name), name);
        }
        let long = accepted(&"x".repeat(65)).into_owned();
        assert_eq!(long, format!("{}_9537c5fd", "x".repeat(55)));
        assert_eq!(accepted("git_fs.read"), "git_fs_read_5f4847e4");
        for name in ["", "ä", "a b", "a/b", "at_12345678", "git_fs_read_5f4847e4", &"é".repeat(100)] {
            let changed = accepted(name);
            assert!(is_accepted(&changed) && may_be_shortened(&changed), "{name}: {changed}");
        }
        assert_ne!(accepted("a.b"), accepted("a/b"));
    }

    #[test]
    fn what_is_known_is_bounded_in_bytes() {
        let mut known = ShortenedEntries::default();
        let entry =
            |bytes: usize| format!(r#"{{"name":"{}"}}"#, "x".repeat(bytes)).parse::<RawObject>().unwrap();
        for number in 0..100 {
            let shortened = ShortenedEntry { inner: number.to_string(), entry: entry(1 << 20) };
            known.insert((ListKind::Tools, number.to_string()), shortened);
            let bytes: usize = known.entries.values().map(|known| known.entry.as_str().len()).sum();
            assert!(bytes <= known.bytes && known.bytes <= MAX_KNOWN_BYTES, "{bytes} {}", known.bytes);
        }
        for _ in 0..100 {
            let shortened = ShortenedEntry { inner: "same".into(), entry: entry(1 << 20) };
            known.insert((ListKind::Tools, "same".into()), shortened);
        }
        assert!(known.entries.len() > 1, "replacing one entry forgets no others");
    }

    async fn gateway(behind: Server, rules: serde_json::Value) -> pintle::Connection {
        let open = move || ready(behind.in_process().map_err(io::Error::other));
        let relay = Relay::connect(Client::new("gateway", "0"), open).await.unwrap();
        let rules = Rules::new(serde_json::from_value(rules).unwrap()).unwrap();
        let names = HostNames::new(Mount::new("git", relay), |_, _| {});
        let server = Server::new("gateway", "0").provider(names).gate(rules);
        Client::new("client", "0").connect(server.in_process().unwrap()).await.unwrap()
    }

    fn behind() -> Server {
        let long = "read_".repeat(20);
        Server::new("files", "0")
            .tool(tool("fs.read", || async { "read" }))
            .tool(tool(long, || async { "long" }))
            .tool(tool("plain", || async { "plain" }))
            // The name that another one is given.
            .tool(tool("fs_read_5f4847e4", || async { "imitated" }))
    }

    #[tokio::test]
    async fn a_tool_with_another_name_is_listed_found_and_called_by_it_alone() {
        let allow = json!({"default": "allow"});
        // Whether or not somebody has listed before.
        let client = gateway(behind(), allow.clone()).await;
        let long = accepted(&format!("git_{}", "read_".repeat(20))).into_owned();
        assert_eq!(client.call_tool(&*long, ()).await.unwrap().text(), "long");
        let client = gateway(behind(), allow.clone()).await;
        assert_eq!(client.call_tool("git_fs_read_5f4847e4", ()).await.unwrap().text(), "read");
        let client = gateway(behind(), allow).await;
        let tools = client.tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let imitator = accepted("git_fs_read_5f4847e4").into_owned();
        assert_eq!(names, ["git_fs_read_5f4847e4", &long, "git_plain", &imitator]);
        assert_eq!(client.call_tool(&*imitator, ()).await.unwrap().text(), "imitated");
        assert_eq!(tools[0].title.as_deref(), Some("git_fs.read"));
        assert_eq!(client.call_tool("git_fs_read_5f4847e4", ()).await.unwrap().text(), "read");
        assert_eq!(client.call_tool("git_plain", ()).await.unwrap().text(), "plain");
        let old = client.call_tool("git_fs.read", ()).await.unwrap_err().to_string();
        assert!(old.contains("no such tool"), "{old}");
    }

    #[tokio::test]
    async fn rules_judge_the_name_that_is_offered_in_lists_and_calls() {
        let deny = json!({
            "rules": [{"tools": ["git_fs_read_5f4847e4"], "decision": "deny", "reason": "closed"}],
            "default": "allow",
        });
        let client = gateway(behind(), deny).await;
        for has_listed in [false, true] {
            if has_listed {
                client.tools().await.unwrap();
            }
            for (name, expected) in [("git_fs_read_5f4847e4", "closed"), ("git_fs.read", "no such tool")] {
                let refused = client.call_tool(name, ()).await.unwrap_err().to_string();
                assert!(refused.contains(expected), "{name}, {has_listed}: {refused}");
            }
            assert_eq!(client.call_tool("git_plain", ()).await.unwrap().text(), "plain");
        }
    }
}
