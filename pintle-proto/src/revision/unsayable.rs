use std::fmt;

/// What the peer's revision has no words for, and what cannot be left out without changing the meaning.
///
/// A server that meets one while asking the client should offer its handler another way; nothing was sent.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unsayable {
    /// The result is not `complete`: `input_required`, or a kind that an extension owns.
    Unfinished,
    /// The peer's revision has no elicitation.
    Elicitation,
    /// The peer's revision has elicitation, but no URL mode.
    UrlElicitation,
    /// A form asks for several choices of one list; the peer could answer with one only.
    MultipleChoice,
    /// A sampling request offers tools, or its messages hold tool calls or their results.
    SamplingTools,
    /// An answer to a sampling request has several blocks that are not all text; the peer reads one.
    SeveralBlocks,
}

impl fmt::Display for Unsayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Unfinished => "a result whose `resultType` is not `complete`",
            Self::Elicitation => "`elicitation/create`",
            Self::UrlElicitation => "`elicitation/create` in URL mode",
            Self::MultipleChoice => "a form field with several choices at once",
            Self::SamplingTools => "`sampling/createMessage` with tools",
            Self::SeveralBlocks => "a sampled message of several blocks that are not all text",
        };
        write!(f, "the peer's protocol revision cannot express {what}")
    }
}

impl std::error::Error for Unsayable {}
