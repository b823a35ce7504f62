//! The keys of questions in sessions, which the protocol does not send there.
//!
//! A client that declares the extension gets the key of each question in its metadata, from servers of this SDK. Without a session
//! keys are part of the protocol.

use pintle_types::JsonObject;

/// The extension that a client declares to get the keys.
pub const EXTENSION: &str = "dev.pintle/question-keys";
/// The member of `_meta` that holds the key of a question.
pub const META: &str = "dev.pintle/question-key";

/// Returns whether a client has declared the extension.
pub fn is_wanted(extensions: Option<&JsonObject>) -> bool {
    extensions.is_some_and(|extensions| extensions.contains_key(EXTENSION))
}

/// Returns the key in the params of a question.
#[cfg(feature = "client")]
pub(crate) fn read(params: &pintle_types::RawObject) -> Option<std::sync::Arc<str>> {
    let meta: Option<JsonObject> = params.decode_member("_meta").ok().flatten();
    meta?.get(META)?.as_str().map(Into::into)
}
