use std::fmt;

/// The error for a message that the peer's revision cannot express, and that cannot be reduced without changing its
/// meaning.
///
/// Nothing was sent: a handler whose question fails with it can try another way.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unsayable {
    /// A result that is not `complete`: `input_required`, or a type that an extension defines.
    Unfinished,
    /// The peer's revision has no elicitation.
    Elicitation,
    /// The peer's revision has elicitation, but no URL mode.
    UrlElicitation,
    /// A form field with several choices; the peer can answer with one only.
    MultipleChoice,
    /// A sampling request with tools, or with messages that contain tool calls or results.
    SamplingTools,
    /// A sampling result with several blocks that are not all text; the peer reads only one.
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
