use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use pintle_types::{RawObject, RawValue};

use crate::server::ordered_map::OrderedMap;

/// Lists that were serialized once. A changed catalogue has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintedLists {
    pub(crate) tools: PrintedList,
    /// The tools as sessions see them, if they differ.
    pub(crate) task_tools: PrintedList,
    pub(crate) prompts: PrintedList,
    pub(crate) resources: PrintedList,
    pub(crate) templates: PrintedList,
}

/// A list that was serialized: as a whole, for those who see all of it, and each entry, for those who see a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintedList {
    pub(crate) whole: OnceLock<Arc<RawObject>>,
    entries: OnceLock<Arc<PrintedEntries>>,
}

/// The texts of entries, by their number.
type PrintedEntries = HashMap<u64, Box<str>>;

impl PrintedList {
    /// Returns the entries, which are printed if this is the first time.
    pub(crate) fn entries<R>(
        &self,
        routes: &OrderedMap<R>,
        print: impl Fn(&R) -> Result<String, serde_json::Error>,
    ) -> Result<Arc<PrintedEntries>, serde_json::Error> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries.clone());
        }
        let printed = routes.after(0).map(|(place, route)| Ok((place, print(route)?.into_boxed_str())));
        let printed: Arc<PrintedEntries> = Arc::new(printed.collect::<Result<_, serde_json::Error>>()?);
        Ok(self.entries.get_or_init(|| printed).clone())
    }
}

/// A page of a list, of entries that are text.
#[derive(Default)]
pub(crate) struct ListPage {
    /// The entries, with commas between them.
    text: String,
    pub(crate) count: usize,
}

impl ListPage {
    pub(crate) fn push(&mut self, entry: &str) {
        if self.count > 0 {
            self.text.push(',');
        }
        self.text.push_str(entry);
        self.count += 1;
    }

    /// Returns the result, with the entries in a member, and the cursor of the next page.
    pub(crate) fn finish(self, member: &str, next: Option<&str>) -> Result<RawObject, serde_json::Error> {
        let entries = RawValue::from_string(format!("[{}]", self.text))?;
        let page = RawObject::builder(entries.get().len() + 64).member(member, &entries)?;
        match next {
            None => page.finish(),
            Some(cursor) => page.text("nextCursor", cursor).finish(),
        }
    }
}
