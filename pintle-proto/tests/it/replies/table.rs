//! What a row of `docs/replies.md` is.

/// One input and what it gets, by revision, oldest first.
pub(super) struct Row {
    pub(super) what: &'static str,
    /// `@` stands for the `_meta` of a stateless request; the rest is explained at [`bytes`].
    pub(super) input: &'static str,
    pub(super) replies: [&'static str; 5],
    pub(super) given: Given,
    /// Tweaks of the demo service.
    pub(super) service: &'static str,
}

/// What has happened before.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Given {
    /// Nothing at all.
    Nothing,
    /// The handshake, in a revision that has one.
    Opened,
    /// That, and a call of id 1 that is not answered yet.
    SlowCall,
}

/// The bytes of an input: `\xNN` is a byte, and `⟨x×n⟩` repeats `x`.
pub(super) fn bytes(input: &str) -> Vec<u8> {
    let mut text = String::new();
    let mut rest = input;
    while let Some((before, after)) = rest.split_once('⟨') {
        let (repeated, after) = after.split_once('⟩').expect("a closing ⟩");
        let (what, count) = repeated.rsplit_once('×').expect("a count");
        text += before;
        text += &what.repeat(count.parse().expect("a count"));
        rest = after;
    }
    text += rest;
    let mut out = Vec::new();
    let mut parts = text.split("\\x");
    out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        out.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
        out.extend_from_slice(&part.as_bytes()[2..]);
    }
    out
}

pub(super) const fn row(what: &'static str, input: &'static str, replies: [&'static str; 5]) -> Row {
    Row { what, input, replies, given: Given::Opened, service: "" }
}

impl Row {
    pub(super) const fn given(self, given: Given) -> Self {
        Self { given, ..self }
    }

    pub(super) const fn service(self, service: &'static str) -> Self {
        Self { service, ..self }
    }
}

/// The same in all revisions.
pub(super) const fn all(reply: &'static str) -> [&'static str; 5] {
    [reply; 5]
}

/// One reply on a session, another without.
pub(super) const fn eras(session: &'static str, stateless: &'static str) -> [&'static str; 5] {
    [session, session, session, session, stateless]
}

/// As a message on its own, but in an array where there are batches.
pub(super) const fn batch(own: &'static str, batch: &'static str) -> [&'static str; 5] {
    [own, batch, own, own, own]
}
