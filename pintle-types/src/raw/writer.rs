use std::borrow::Cow;

use serde::{Serialize, ser::Error as _};

use super::{
    RawObject,
    escape::escape,
    members::{Member, Members},
    one_line, printed,
};

/// An object that is being printed, member by member.
pub(crate) struct ObjectWriter {
    text: String,
    members: Members,
}

impl ObjectWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self { text, members: Members::new() }
    }

    /// Goes on behind the members of `object`.
    pub(super) fn after(object: &RawObject, bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push_str(object.text.strip_suffix('}').unwrap_or("{"));
        Self { text, members: object.members.clone() }
    }

    /// Writes a member. `value` is JSON.
    pub(super) fn push(&mut self, name: &str, value: &str) {
        self.push_line(name, &one_line(value));
    }

    /// Writes a member. `value` is JSON on one line.
    pub(super) fn push_line(&mut self, name: &str, value: &str) {
        let printed = printed(name);
        self.members.note(matches!(printed, Cow::Borrowed(_)));
        self.push_printed(&printed, value);
    }

    /// Copies those members of an object whose names, as printed, are wanted.
    pub(super) fn extend(&mut self, object: &RawObject, mut wanted: impl FnMut(&str) -> bool) {
        self.members.note(object.members.is_plain());
        let members = object.iter().filter(|(name, _)| wanted(name));
        members.for_each(|(name, value)| self.push_printed(name, value));
    }

    /// Writes a member whose name is printed already and whose value is on one line.
    pub(super) fn push_printed(&mut self, name: &str, value: &str) {
        // Separator, two quotes, colon; the brace that closes the object.
        self.text.reserve(name.len() + value.len() + 5);
        self.begin(name);
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

    /// Prints a member, if it is present.
    pub(crate) fn optional<T: Serialize>(
        &mut self,
        name: &str,
        value: Option<&T>,
    ) -> Result<(), serde_json::Error> {
        value.map_or(Ok(()), |value| self.json(name, value))
    }

    /// Begins a member whose name needs no escapes. Its value is what is written until its [`end`](Self::end).
    pub(crate) fn begin(&mut self, name: &str) {
        self.text.push_str(if self.members.len() == 0 { "\"" } else { ",\"" });
        let start = self.here();
        self.text.push_str(name);
        let name = (start, self.here());
        self.text.push_str("\":");
        self.members.push(Member { name, value: (self.here(), 0) });
    }

    /// Begins a member of any name.
    pub(super) fn begin_named(&mut self, name: &str) {
        let printed = printed(name);
        self.members.note(matches!(printed, Cow::Borrowed(_)));
        self.begin(&printed);
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
        escape(&mut self.text, text);
        self.text.push('"');
    }

    /// Prints a value in place. After an error the writer must not be used any more.
    pub(super) fn print<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), serde_json::Error> {
        let start = self.text.len();
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        serde_json::to_writer(&mut bytes, value)?;
        if let Some(printed) = bytes.get_mut(start..)
            && memchr::memchr2(b'\n', b'\r', printed).is_some()
        {
            let breaks = printed.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r'));
            breaks.for_each(|byte| *byte = b' ');
        }
        self.text = String::from_utf8(bytes).map_err(serde_json::Error::custom)?;
        Ok(())
    }

    /// Returns the current position. It wraps past 4 GiB; the members of such an object are not kept.
    fn here(&self) -> u32 {
        self.text.len() as u32
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.text.len() > u32::MAX as usize
    }

    pub(super) fn repeated(&self) -> Option<&str> {
        self.members.repeated(&self.text)
    }

    pub(crate) fn finish(mut self) -> RawObject {
        self.text.push('}');
        let members = if self.is_too_large() { Members::new() } else { self.members };
        RawObject { text: self.text, members }
    }
}
