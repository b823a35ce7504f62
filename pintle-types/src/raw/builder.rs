use std::borrow::Cow;

use serde::{Serialize, ser::Error as _};

use super::{
    Index, RawObject,
    escape::escape,
    has_breaks,
    members::{Member, Members},
    printed,
};

/// An object being printed, member by member.
pub(crate) struct Builder {
    text: String,
    members: Members,
    /// The inside of the longest text so far.
    prose: (u32, u32),
}

impl Builder {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self { text, members: Members::new(), prose: (0, 0) }
    }

    /// After these members, which stand in this text. Its last brace is left out.
    pub(super) fn going_on(before: &str, members: &Members, bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push_str(before);
        Self { text, members: members.clone(), prose: (0, 0) }
    }

    pub(super) fn push(&mut self, name: &str, value: &str) {
        let printed = printed(name);
        self.members.note(matches!(printed, Cow::Borrowed(_)));
        self.push_printed(&printed, value);
    }

    /// Takes over members of another object.
    pub(super) fn extend<'a>(&mut self, members: impl Iterator<Item = (&'a str, &'a str)>, plain: bool) {
        self.members.note(plain);
        members.for_each(|(name, value)| self.push_printed(name, value));
    }

    /// The name is as it stands between the quotes; one with escapes in it is not for this.
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

    /// Begins a member of the protocol's. Its value is what is written until its [`end`](Self::end).
    pub(crate) fn begin(&mut self, name: &'static str) {
        self.begin_printed(name);
    }

    /// Begins a member of any name.
    pub(super) fn begin_named(&mut self, name: &str) {
        let printed = printed(name);
        self.members.note(matches!(printed, Cow::Borrowed(_)));
        self.begin_printed(&printed);
    }

    fn begin_printed(&mut self, name: &str) {
        self.text.push_str(if self.members.len() == 0 { "\"" } else { ",\"" });
        let start = self.here();
        self.text.push_str(name);
        let name = (start, self.here());
        self.text.push_str("\":");
        self.members.push(Member { name, value: (self.here(), 0) });
    }

    pub(crate) fn end(&mut self) {
        self.members.end(self.here());
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
        if self.prose.1.saturating_sub(self.prose.0) <= self.here().saturating_sub(start) {
            self.prose = (start, self.here());
        }
        self.text.push('"');
    }

    /// Prints the value straight to its place, on one line. After an error there is nothing to go on with.
    pub(super) fn print<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), serde_json::Error> {
        let start = self.text.len();
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        serde_json::to_writer(&mut bytes, value)?;
        if let Some(printed) = bytes.get_mut(start..).filter(|printed| has_breaks(printed)) {
            let breaks = printed.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r'));
            breaks.for_each(|byte| *byte = b' ');
        }
        self.text = String::from_utf8(bytes).map_err(serde_json::Error::custom)?;
        Ok(())
    }

    /// Past 4 GiB these wrap; such an object is refused, or not indexed, before anyone looks.
    fn here(&self) -> u32 {
        self.text.len() as u32
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.text.len() > u32::MAX as usize
    }

    pub(super) fn repeated(&self) -> Option<&str> {
        self.members.repeated(&self.text)
    }

    /// The object, of members that somebody else has printed.
    pub(super) fn finish(mut self) -> RawObject {
        self.text.push('}');
        let index = Index::Here(self.members);
        RawObject { text: self.text, start: 0, index, one_line: false, prose: (0, 0), ahead: None }
    }

    /// The object, of members that were printed here.
    pub(crate) fn finish_printed(mut self) -> RawObject {
        self.text.push('}');
        if self.is_too_large() {
            return RawObject::printed(self.text);
        }
        let index = Index::Here(self.members);
        RawObject { text: self.text, start: 0, index, one_line: true, prose: self.prose, ahead: None }
    }
}
