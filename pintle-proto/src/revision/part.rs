/// The part of a message that a payload is, and its method.
#[expect(
    clippy::exhaustive_enums,
    reason = "a message carries one of these two; errors are shaped on their own"
)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part<'a> {
    /// The `params` of the request or notification with this method.
    Params(&'a str),
    /// The `result` of the request with this method.
    Result(&'a str),
}
