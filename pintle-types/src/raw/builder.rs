use std::sync::OnceLock;

use serde::Serialize;

use super::{Index, Member, RawObject, escape::escape, printed};

/// An object being printed, member by member.
pub(crate) struct Builder {
    text: String,
    members: Vec<Member>,
    /// The inside of the longest text so far.
    prose: (u32, u32),
}

/// From this many bytes on a text is worth being passed by in a search.
const LONG: usize = 512;

impl Builder {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self { text, members: Vec::with_capacity(4), prose: (0, 0) }
    }

    /// Goes on with an object without its closing brace.
    pub(super) fn going_on(text: String, members: Vec<Member>) -> Self {
        Self { text, members, prose: (0, 0) }
    }

    pub(super) fn push(&mut self, name: &str, value: &str) {
        self.push_printed(&printed(name), value);
    }

    pub(super) fn push_printed(&mut self, name: &str, value: &str) {
        // Separator, two quotes, colon; the brace that closes the object.
        self.text.reserve(name.len() + value.len() + 5);
        self.begin_printed(name);
        self.text.push_str(value);
        self.end();
    }

    /// Prints a member.
    pub(crate) fn json<T: Serialize + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), serde_json::Error> {
        self.push(name, &serde_json::to_string(value)?);
        Ok(())
    }

    /// Prints a member, if it is there.
    pub(crate) fn optional<T: Serialize>(
        &mut self,
        name: &str,
        value: Option<&T>,
    ) -> Result<(), serde_json::Error> {
        value.map_or(Ok(()), |value| self.json(name, value))
    }

    /// Begins a member. Its value is what is written until its [`end`](Self::end).
    pub(crate) fn begin(&mut self, name: &str) {
        self.begin_printed(&printed(name));
    }

    fn begin_printed(&mut self, name: &str) {
        self.text.push_str(if self.members.is_empty() { "\"" } else { ",\"" });
        let start = self.here();
        self.text.push_str(name);
        let name = (start, self.here());
        self.text.push_str("\":");
        self.members.push(Member { name, value: (self.here(), 0) });
    }

    pub(crate) fn end(&mut self) {
        let end = self.here();
        if let Some(member) = self.members.last_mut() {
            member.value.1 = end;
        }
    }

    /// Writes a piece of the value, JSON on one line.
    pub(crate) fn write(&mut self, json: &str) {
        self.text.push_str(json);
    }

    /// Writes a text as a JSON string.
    pub(crate) fn write_text(&mut self, text: &str) {
        self.text.push('"');
        let start = self.here();
        escape(&mut self.text, text);
        if text.len() >= LONG && self.prose.1 - self.prose.0 < self.here().saturating_sub(start) {
            self.prose = (start, self.here());
        }
        self.text.push('"');
    }

    /// Past 4 GiB these wrap; such an object is refused, or not indexed, before anyone looks.
    fn here(&self) -> u32 {
        self.text.len() as u32
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.text.len() > u32::MAX as usize
    }

    /// A name that stands twice. Sorting keeps hostile objects of many members from costing their square.
    pub(super) fn repeated(&self) -> Option<&str> {
        let name = |member: &Member| {
            self.text.get(member.name.0 as usize..member.name.1 as usize).unwrap_or_default()
        };
        if self.members.len() <= 12 {
            return self.members.iter().enumerate().find_map(|(at, member)| {
                let earlier = self.members.get(..at).unwrap_or_default();
                earlier.iter().any(|other| name(other) == name(member)).then(|| name(member))
            });
        }
        let mut names: Vec<&str> = self.members.iter().map(name).collect();
        names.sort_unstable();
        names
            .windows(2)
            .find_map(|pair| (pair.first() == pair.last()).then(|| pair.first().copied()).flatten())
    }

    /// The object, of members that somebody else has printed.
    pub(super) fn finish(mut self) -> RawObject {
        self.text.push('}');
        let index = OnceLock::from(Index::Here(self.members));
        RawObject { text: self.text, start: 0, index, one_line: false, prose: (0, 0), ahead: None }
    }

    /// The object, of members that were printed here.
    pub(crate) fn finish_printed(mut self) -> RawObject {
        self.text.push('}');
        if self.is_too_large() {
            return RawObject::printed(self.text);
        }
        let index = OnceLock::from(Index::Here(self.members));
        RawObject { text: self.text, start: 0, index, one_line: true, prose: self.prose, ahead: None }
    }
}
