//! A scan over the members of JSON objects. serde_json reads their values.

use std::{borrow::Cow, marker::PhantomData};

use serde::de::{DeserializeSeed, IgnoredAny};

use super::{
    ObjectSeed, RawObject,
    decoded::DecodedMember,
    known,
    members::{Member, Members},
    one_line,
    reader::Name,
};

/// A position in a JSON text.
///
/// Each method returns `None` if the text is not what it expects.
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the text that is left, without white space at its start.
    pub(crate) fn rest(&mut self) -> Option<&'a str> {
        self.next()?;
        self.text.get(self.at..)
    }

    /// Skips bytes that were looked at in the [rest](Self::rest).
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns the next byte that is not white space, without skipping it.
    pub(crate) fn next(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// Reads `token`.
    pub(crate) fn token(&mut self, token: u8) -> Option<()> {
        (self.next()? == token).then(|| self.at += 1)
    }

    /// Reads an object. `member` reads the name, the colon and the value of each of its members.
    pub(crate) fn members(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.token(b'{')?;
        let mut more = self.next()? != b'}';
        while more {
            member(self)?;
            more = self.next()? == b',';
            self.at += usize::from(more);
        }
        self.token(b'}')
    }

    /// Reads a string, borrowed if it has no escapes.
    pub(crate) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.token(b'"')?;
        let start = self.at;
        let mut end = start;
        loop {
            match self.text.as_bytes().get(end)? {
                b'"' => break,
                b'\\' | ..b' ' => {
                    self.at = start - 1;
                    return self.value(Name);
                }
                _ => end += 1,
            }
        }
        self.at = end + 1;
        self.text.get(start..end).map(Cow::Borrowed)
    }

    /// Reads an object. The strings of the member `decoded` are decoded in the same pass, if the text is long.
    pub(crate) fn object(&mut self, decoded: Option<&'static str>) -> Option<ScannedObject> {
        self.next()?;
        let start = self.at;
        let decoded = decoded.filter(|_| self.text.len() - start >= DecodedMember::LONG);
        let mut members = Members::new();
        let mut strings = None;
        let mut is_plain = true;
        self.members(|scan| {
            let Named { name, span } = scan.name(start)?;
            let value = match decoded {
                Some(wanted) if name == wanted && scan.next()? == b'{' => scan.span(start, |scan| {
                    DecodedMember::read(scan, wanted, start).map(|read| strings = read)
                })?,
                _ if name == known::REPEATED => scan.span(start, Self::repeated_value)?,
                _ => scan.span(start, Self::any_value)?,
            };
            match span {
                Some(name) => members.push(Member { name, value }),
                None => is_plain = false,
            }
            Some(())
        })?;
        if !is_plain {
            // A name with escapes has to be printed anew, so that equal names have equal texts.
            self.at = start;
            return self.value(ObjectSeed).map(ScannedObject::Printed);
        }
        if members.repeated(self.text.get(start..self.at)?).is_some() {
            return None;
        }
        if let Some(strings) = strings {
            members.set_decoded(strings);
        }
        Some(ScannedObject::Span { start, end: self.at, members })
    }

    /// Reads the name of a member and the colon behind it. The span of a name without escapes counts from `start`.
    pub(super) fn name(&mut self, start: usize) -> Option<Named<'a>> {
        let name = self.string()?;
        let span = match &name {
            Cow::Borrowed(name) => Some(relative(start, self.at - 1 - name.len(), self.at - 1)?),
            Cow::Owned(_) => None,
        };
        self.token(b':')?;
        Some(Named { name, span })
    }

    /// Returns the span of the value that `read` reads. It counts from `start`.
    pub(super) fn span(
        &mut self,
        start: usize,
        read: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<(u32, u32)> {
        self.next()?;
        let from = self.at;
        read(self)?;
        relative(start, from, self.at)
    }

    fn any_value(&mut self) -> Option<()> {
        self.value(PhantomData::<IgnoredAny>).map(drop)
    }

    /// Reads a value. An object that was read before is skipped.
    fn repeated_value(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        if !rest.starts_with('{') {
            return self.any_value();
        }
        if let Some(length) = known::length(rest.as_bytes()) {
            self.at += length;
            return Some(());
        }
        let start = self.at;
        self.any_value()?;
        known::add(self.text.get(start..self.at)?);
        Some(())
    }

    /// Reads a value with serde_json.
    pub(crate) fn value<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Option<T::Value> {
        let mut deserializer = serde_json::Deserializer::from_str(self.text.get(self.at..)?);
        let value = seed.deserialize(&mut deserializer).ok()?;
        self.at += deserializer.into_iter::<IgnoredAny>().byte_offset();
        Some(value)
    }
}

/// An object that was found in a text.
pub(crate) enum ScannedObject {
    /// A part of the text.
    Span { start: usize, end: usize, members: Members },
    /// An object that had to be printed anew.
    Printed(RawObject),
}

impl ScannedObject {
    /// Copies the object out of the text that was scanned.
    pub(crate) fn copy(self, scanned: &str) -> RawObject {
        match self {
            Self::Printed(object) => object,
            Self::Span { members, .. } if members.len() == 0 => RawObject::empty(),
            Self::Span { start, end, members } => {
                let text = one_line(scanned.get(start..end).unwrap_or_default()).into_owned();
                RawObject { text, members }
            }
        }
    }

    /// Makes the text that was scanned that of the object, without a copy.
    pub(crate) fn cut(self, mut scanned: String) -> RawObject {
        match self {
            Self::Span { start, end, members } if members.len() > 0 => {
                scanned.truncate(end);
                scanned.drain(..start);
                let text = match one_line(&scanned) {
                    Cow::Borrowed(_) => scanned,
                    Cow::Owned(text) => text,
                };
                RawObject { text, members }
            }
            other => other.copy(&scanned),
        }
    }
}

/// The name of a member, and its span if it has no escapes.
pub(super) struct Named<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) span: Option<(u32, u32)>,
}

fn relative(start: usize, from: usize, to: usize) -> Option<(u32, u32)> {
    Some((u32::try_from(from - start).ok()?, u32::try_from(to - start).ok()?))
}
