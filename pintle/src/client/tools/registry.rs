use std::{collections::HashMap, sync::Arc};

use pintle_proto::http::HeaderParams;
use pintle_types::schema::Tool;
use tokio::time::Instant;

/// How many tools are remembered.
const MAX_TOOLS: usize = 16_384;

/// The tools of a server as they were listed last, and whether that is still to be believed.
///
/// A list is believed for as long as the server said, and while the server could have told of a change and did not. What
/// interrupts that, such as a subscription that ended, makes the list old news.
#[derive(Debug)]
pub(in crate::client) struct ToolRegistry {
    known: HashMap<String, KnownTool>,
    /// Of the pages that they came in.
    bytes: usize,
    max_bytes: usize,
    /// How often everything known was dropped.
    dropped: u64,
    /// The subscription that tells of changes, as a number that is another one after every gap.
    subscribed: Option<u64>,
    subscriptions: u64,
    /// How the tools that are known were listed.
    listed: Option<Listed>,
}

/// A tool that was listed.
#[derive(Clone, Debug)]
pub(in crate::client) struct KnownTool {
    pub(in crate::client) tool: Arc<Tool>,
    /// Which arguments are repeated as headers, where there are headers.
    pub(in crate::client) headers: Arc<HeaderParams>,
}

/// When tools were asked for: what happens afterwards may make the answer old news.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::client) struct ToolsVersion {
    dropped: u64,
    /// What told of changes then, if anything did.
    told: Option<Told>,
}

/// What tells of changes, as a number that is another one after every gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::client) enum Told {
    /// The connection itself.
    Connection(u64),
    Subscription(u64),
}

#[derive(Debug)]
struct Listed {
    stamp: ToolsVersion,
    /// Until when the server says that it is good.
    until: Instant,
    /// Whether the last page was among it.
    complete: bool,
}

/// A page of a list of tools.
#[derive(Debug)]
pub(in crate::client) struct ToolPage {
    pub(in crate::client) tools: Vec<(String, KnownTool)>,
    pub(in crate::client) bytes: usize,
    pub(in crate::client) first: bool,
    pub(in crate::client) last: bool,
    /// Until when the server says that it is good.
    pub(in crate::client) until: Instant,
}

impl ToolRegistry {
    pub(in crate::client) fn new(max_bytes: usize) -> Self {
        Self {
            known: HashMap::new(),
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

    pub(in crate::client) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What is asked for now is as new as this. `connection` is what the connection tells of without being asked.
    pub(in crate::client) fn stamp(&self, connection: Option<u64>) -> ToolsVersion {
        let told = connection.map(Told::Connection).or(self.subscribed.map(Told::Subscription));
        ToolsVersion { dropped: self.dropped, told }
    }

    /// Whether nothing that would have been told of has happened since.
    pub(in crate::client) fn is_since(&self, stamp: ToolsVersion) -> bool {
        self.dropped == stamp.dropped
    }

    /// What is known of this tool, if that is still to be believed: `Some(None)` if the server has no such tool.
    pub(in crate::client) fn fresh(
        &self,
        name: &str,
        now: ToolsVersion,
        at: Instant,
    ) -> Option<Option<Arc<Tool>>> {
        let listed = self.listed.as_ref()?;
        let told = now.told.is_some() && listed.stamp == now;
        if listed.stamp.dropped != now.dropped || !(told || at < listed.until) {
            return None;
        }
        match self.known.get(name) {
            Some(known) => Some(Some(known.tool.clone())),
            None => listed.complete.then_some(None),
        }
    }

    /// Remembers a page that was asked for at that time; the first begins anew. One that is old news by now is not kept.
    pub(in crate::client) fn learn(&mut self, page: ToolPage, asked: ToolsVersion) {
        if asked.dropped != self.dropped {
            return;
        }
        let ToolPage { tools, bytes, first, last, until } = page;
        match &mut self.listed {
            Some(listed) if !first => {
                if listed.stamp != asked {
                    listed.stamp.told = None;
                }
                listed.until = listed.until.min(until);
                listed.complete = last;
            }
            // A page from the middle: there are others.
            listed => *listed = Some(Listed { stamp: asked, until, complete: first && last }),
        }
        if first {
            self.forget();
        }
        self.remember(tools, bytes);
    }

    /// Remembers what was not known, of a page whose age is not known.
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
        self.known.extend(tools.into_iter().take(room));
    }

    fn forget(&mut self) {
        self.known.clear();
        self.bytes = 0;
    }

    /// What is known may be wrong by now, and so is what is on its way.
    pub(in crate::client) fn drop_all(&mut self) {
        self.forget();
        self.listed = None;
        self.dropped += 1;
    }

    /// A subscription tells of changes from now on.
    pub(in crate::client) fn subscribed(&mut self) {
        if self.subscribed.is_none() {
            self.subscriptions += 1;
            self.subscribed = Some(self.subscriptions);
        }
    }

    /// None does any more.
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
    fn a_list_is_believed_while_somebody_would_have_told_of_a_change() {
        let (mut tools, now) = (ToolRegistry::new(1000), Instant::now());
        let asked = tools.stamp(Some(1));
        tools.learn(page(&["a"], true, false, now), asked);
        assert!(tools.fresh("a", tools.stamp(Some(1)), now).is_some());
        // What is not known may be on the next page.
        assert!(tools.fresh("b", tools.stamp(Some(1)), now).is_none());
        tools.learn(page(&[], false, true, now), asked);
        assert!(matches!(tools.fresh("b", tools.stamp(Some(1)), now), Some(None)));
        // Another period of the connection, or none.
        assert!(tools.fresh("a", tools.stamp(Some(3)), now).is_none());
        assert!(tools.fresh("a", tools.stamp(None), now).is_none());
        tools.drop_all();
        assert!(tools.fresh("a", tools.stamp(Some(1)), now).is_none());
        // The answer of before comes too late.
        tools.learn(page(&["a"], true, true, now), asked);
        assert!(tools.fresh("a", tools.stamp(Some(1)), now).is_none());
    }

    #[test]
    fn what_was_listed_before_a_subscription_is_not_covered_by_it() {
        let (mut tools, now) = (ToolRegistry::new(1000), Instant::now());
        let before = tools.stamp(None);
        tools.subscribed();
        tools.learn(page(&["a"], true, true, now), before);
        assert!(tools.fresh("a", tools.stamp(None), now).is_none());
        let during = tools.stamp(None);
        tools.learn(page(&["a"], true, true, now), during);
        assert!(tools.fresh("a", tools.stamp(None), now).is_some());
        tools.unsubscribed();
        assert!(tools.fresh("a", tools.stamp(None), now).is_none());
        tools.subscribed();
        assert!(tools.fresh("a", tools.stamp(None), now).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded_in_bytes() {
        let (mut tools, now) = (ToolRegistry::new(25), Instant::now());
        let asked = tools.stamp(Some(1));
        for (name, first, last) in [("a", true, false), ("b", false, false), ("c", false, true)] {
            tools.learn(page(&[name], first, last, now), asked);
        }
        assert!(tools.get("b").is_some() && tools.get("c").is_none());
        // It is not known to be no tool.
        assert!(tools.fresh("c", asked, now).is_none());
        tools.learn(page(&["d"], true, true, now), asked);
        assert!(tools.get("d").is_some());
    }

    #[test]
    fn a_list_is_believed_for_as_long_as_the_server_said() {
        let (mut tools, now) = (ToolRegistry::new(1000), Instant::now());
        let asked = tools.stamp(None);
        tools.learn(page(&["a"], true, true, now + Duration::from_secs(1)), asked);
        assert!(tools.fresh("a", tools.stamp(None), now).is_some());
        assert!(tools.fresh("a", tools.stamp(None), now + Duration::from_secs(1)).is_none());
    }
}
