use std::{collections::HashMap, sync::Arc};

use pintle_proto::http::HeaderParams;
use pintle_types::schema::Tool;
use tokio::time::Instant;

/// Limit of stored tools.
const MAX_TOOLS: usize = 16_384;

/// The tools of a server as they were listed last, and whether the list is current.
///
/// A list is current until its time to live has passed, and as long as the server would have reported a change. A gap in the
/// reports, such as a subscription that ended, makes it outdated.
#[derive(Debug)]
pub(in crate::client) struct ToolRegistry {
    known: HashMap<String, KnownTool>,
    /// Whether one of them may have an output schema.
    has_output_schemas: bool,
    /// The size of their pages.
    bytes: usize,
    max_bytes: usize,
    /// How often all tools were discarded.
    dropped: u64,
    /// The subscription that reports changes; its number differs after every gap.
    subscribed: Option<u64>,
    subscriptions: u64,
    /// How the known tools were listed.
    listed: Option<Listed>,
}

/// A tool that was listed.
#[derive(Clone, Debug)]
pub(in crate::client) struct KnownTool {
    pub(in crate::client) tool: Arc<Tool>,
    /// The arguments that are mirrored in headers.
    pub(in crate::client) headers: Arc<HeaderParams>,
}

/// The version of a list of tools: when it was requested, relative to changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::client) struct ToolsVersion {
    dropped: u64,
    /// The source of change notifications at that time, if there was one.
    source: Option<ChangeSource>,
}

/// A source of change notifications, with a number that differs after every gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::client) enum ChangeSource {
    /// The connection itself.
    Connection(u64),
    Subscription(u64),
}

#[derive(Debug)]
struct Listed {
    version: ToolsVersion,
    /// The end of its time to live.
    until: Instant,
    /// Whether the last page was received.
    complete: bool,
}

/// Tools that are not known any more, by name.
pub(in crate::client) type DiscardedTools = HashMap<String, KnownTool>;

/// A page of a list of tools.
#[derive(Debug)]
pub(in crate::client) struct ToolPage {
    pub(in crate::client) tools: Vec<(String, KnownTool)>,
    pub(in crate::client) bytes: usize,
    pub(in crate::client) first: bool,
    pub(in crate::client) last: bool,
    /// The end of its time to live.
    pub(in crate::client) until: Instant,
}

impl ToolRegistry {
    pub(in crate::client) fn new(max_bytes: usize) -> Self {
        Self {
            known: HashMap::new(),
            has_output_schemas: false,
            bytes: 0,
            max_bytes,
            dropped: 0,
            subscribed: None,
            subscriptions: 0,
            listed: None,
        }
    }

    pub(in crate::client) fn get(&self, name: &str) -> Option<&KnownTool> {
        self.known.get(name)
    }

    /// Returns whether a tool may have an output schema.
    pub(in crate::client) fn has_output_schemas(&self) -> bool {
        self.has_output_schemas
    }

    pub(in crate::client) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns how often all tools were discarded.
    pub(in crate::client) fn generation(&self) -> u64 {
        self.dropped
    }

    /// Returns the version of a list that is requested now. `connection` is the period in which the connection reports changes.
    pub(in crate::client) fn version(&self, connection: Option<u64>) -> ToolsVersion {
        let source =
            connection.map(ChangeSource::Connection).or(self.subscribed.map(ChangeSource::Subscription));
        ToolsVersion { dropped: self.dropped, source }
    }

    /// Whether the tools were not discarded since.
    pub(in crate::client) fn is_current(&self, version: ToolsVersion) -> bool {
        self.dropped == version.dropped
    }

    /// Returns the definition of a tool, if it is known and current: `Some(None)` if the server has no such tool.
    pub(in crate::client) fn fresh(
        &self,
        name: &str,
        now: ToolsVersion,
        at: Instant,
    ) -> Option<Option<Arc<Tool>>> {
        let listed = self.listed.as_ref()?;
        let reported = now.source.is_some() && listed.version == now;
        if listed.version.dropped != now.dropped || !(reported || at < listed.until) {
            return None;
        }
        match self.known.get(name) {
            Some(known) => Some(Some(known.tool.clone())),
            None => listed.complete.then_some(None),
        }
    }

    /// Stores a page that was requested at this version; a first page replaces all others, which are returned. Outdated pages are ignored.
    #[must_use = "to be dropped without the lock: it may be large"]
    pub(in crate::client) fn learn(&mut self, page: ToolPage, asked: ToolsVersion) -> DiscardedTools {
        if asked.dropped != self.dropped {
            return DiscardedTools::new();
        }
        let ToolPage { tools, bytes, first, last, until } = page;
        match &mut self.listed {
            Some(listed) if !first => {
                if listed.version != asked {
                    listed.version.source = None;
                }
                listed.until = listed.until.min(until);
                listed.complete = last;
            }
            // A page from the middle: there are others.
            listed => *listed = Some(Listed { version: asked, until, complete: first && last }),
        }
        let before = if first { self.forget() } else { DiscardedTools::new() };
        self.remember(tools, bytes);
        before
    }

    /// Stores the unknown tools of a page of unknown age.
    pub(in crate::client) fn supplement(&mut self, mut tools: Vec<(String, KnownTool)>, bytes: usize) {
        tools.retain(|(name, _)| !self.known.contains_key(name));
        if tools.is_empty() {
            return;
        }
        self.listed = None;
        self.remember(tools, bytes);
    }

    fn remember(&mut self, tools: Vec<(String, KnownTool)>, bytes: usize) {
        let fits = self.bytes.saturating_add(bytes) <= self.max_bytes;
        let room = if fits { MAX_TOOLS.saturating_sub(self.known.len()) } else { 0 };
        if fits {
            self.bytes += bytes;
        }
        if tools.len() > room
            && let Some(listed) = &mut self.listed
        {
            listed.complete = false;
        }
        self.has_output_schemas |= tools.iter().any(|(_, known)| known.tool.output_schema.is_some());
        self.known.extend(tools.into_iter().take(room));
    }

    fn forget(&mut self) -> DiscardedTools {
        (self.bytes, self.has_output_schemas) = (0, false);
        std::mem::take(&mut self.known)
    }

    /// Discards all tools, including lists that were requested and have not arrived. Returns them.
    #[must_use = "to be dropped without the lock: they may be large"]
    pub(in crate::client) fn drop_all(&mut self) -> DiscardedTools {
        self.listed = None;
        self.dropped += 1;
        self.forget()
    }

    /// Records that a subscription reports changes from now on.
    pub(in crate::client) fn subscribed(&mut self) {
        if self.subscribed.is_none() {
            self.subscriptions += 1;
            self.subscribed = Some(self.subscriptions);
        }
    }

    /// Records the end of the subscription.
    pub(in crate::client) fn unsubscribed(&mut self) {
        self.subscribed = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn page(names: &[&str], first: bool, last: bool, until: Instant) -> ToolPage {
        let tool = |name: &str| {
            let tool = serde_json::from_str(&format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#)).unwrap();
            (name.to_owned(), KnownTool { tool: Arc::new(tool), headers: Arc::default() })
        };
        ToolPage { tools: names.iter().map(|name| tool(name)).collect(), bytes: 10, first, last, until }
    }

    #[test]
    fn a_list_is_believed_while_somebody_would_have_reported_a_change() {
        let (mut tools, now) = (ToolRegistry::new(1000), Instant::now());
        let asked = tools.version(Some(1));
        drop(tools.learn(page(&["a"], true, false, now), asked));
        assert!(tools.fresh("a", tools.version(Some(1)), now).is_some());
        // What is not known may be on the next page.
        assert!(tools.fresh("b", tools.version(Some(1)), now).is_none());
        drop(tools.learn(page(&[], false, true, now), asked));
        assert!(matches!(tools.fresh("b", tools.version(Some(1)), now), Some(None)));
        // Another period of the connection, or none.
        assert!(tools.fresh("a", tools.version(Some(3)), now).is_none());
        assert!(tools.fresh("a", tools.version(None), now).is_none());
        drop(tools.drop_all());
        assert!(tools.fresh("a", tools.version(Some(1)), now).is_none());
        // The answer of before comes too late.
        drop(tools.learn(page(&["a"], true, true, now), asked));
        assert!(tools.fresh("a", tools.version(Some(1)), now).is_none());
    }

    #[test]
    fn what_was_listed_before_a_subscription_is_not_covered_by_it() {
        let (mut tools, now) = (ToolRegistry::new(1000), Instant::now());
        let before = tools.version(None);
        tools.subscribed();
        drop(tools.learn(page(&["a"], true, true, now), before));
        assert!(tools.fresh("a", tools.version(None), now).is_none());
        let during = tools.version(None);
        drop(tools.learn(page(&["a"], true, true, now), during));
        assert!(tools.fresh("a", tools.version(None), now).is_some());
        tools.unsubscribed();
        assert!(tools.fresh("a", tools.version(None), now).is_none());
        tools.subscribed();
        assert!(tools.fresh("a", tools.version(None), now).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded_in_bytes() {
        let (mut tools, now) = (ToolRegistry::new(25), Instant::now());
        let asked = tools.version(Some(1));
        for (name, first, last) in [("a", true, false), ("b", false, false), ("c", false, true)] {
            drop(tools.learn(page(&[name], first, last, now), asked));
        }
        assert!(tools.get("b").is_some() && tools.get("c").is_none());
        // It is not known to be no tool.
        assert!(tools.fresh("c", asked, now).is_none());
        drop(tools.learn(page(&["d"], true, true, now), asked));
        assert!(tools.get("d").is_some());
    }

    #[test]
    fn a_list_is_believed_for_as_long_as_the_server_allows() {
        let (mut tools, now) = (ToolRegistry::new(1000), Instant::now());
        let asked = tools.version(None);
        drop(tools.learn(page(&["a"], true, true, now + Duration::from_secs(1)), asked));
        assert!(tools.fresh("a", tools.version(None), now).is_some());
        assert!(tools.fresh("a", tools.version(None), now + Duration::from_secs(1)).is_none());
    }
}
