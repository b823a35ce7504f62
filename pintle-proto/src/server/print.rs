//! Serialization of messages directly into a buffer.

use pintle_types::{RequestId, RpcError};
use serde::Serialize;
use serde_json::Value;

use super::Body;
use crate::{Part, Revision};

/// Writes `{"jsonrpc":"2.0","id":…,"result":`; the caller adds an object and a closing brace.
pub(crate) fn open_result(out: &mut Vec<u8>, id: &RequestId) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    self::id(out, id);
    out.extend_from_slice(br#","result":"#);
}

/// Returns the length of that prefix and the closing brace. An id with escapes may take more.
pub(crate) fn room(id: &RequestId) -> usize {
    let id = match id {
        RequestId::Number(number) => {
            let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
            digits + usize::from(*number < 0)
        }
        RequestId::String(text) => text.len() + 2,
    };
    r#"{"jsonrpc":"2.0","id":,"result":}"#.len() + id
}

/// Writes a complete error response.
pub(crate) fn error(out: &mut Vec<u8>, id: &RequestId, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    self::id(out, id);
    out.extend_from_slice(br#","error":"#);
    json(out, error);
    out.push(b'}');
}

/// Returns a complete notification, in the shapes of `revision`.
pub(crate) fn notification(revision: Revision, method: &str, params: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    json(&mut out, method);
    out.extend_from_slice(br#","params":"#);
    let at = out.len();
    json(&mut out, params);
    if !revision.is_canonical() {
        lower(revision, Part::Params(method), &mut out, at);
    }
    out.push(b'}');
    one_line(&mut out);
    out
}

/// Lowers the JSON written from `at` on. A value that cannot be lowered, because it is nested too deep or the revision
/// cannot express it, is left unchanged: receivers ignore unknown members of a notification.
fn lower(revision: Revision, part: Part<'_>, out: &mut Vec<u8>, at: usize) {
    let printed = out.get(at..).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    if !revision.lowers(part, printed) {
        return;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(printed) else { return };
    if revision.lower(part, &mut value).is_ok() {
        out.truncate(at);
        json(out, &value);
    }
}

/// Replaces line breaks in a serialized message by spaces: a handler may pass on JSON with line breaks between its
/// tokens, and on a line-delimited stream they would end the message. JSON strings contain no raw line breaks.
pub(crate) fn one_line(message: &mut [u8]) {
    // The byte is always stored, so that the compiler vectorizes the loop: half the instructions of searching first.
    for byte in message {
        *byte = if matches!(*byte, b'\n' | b'\r') { b' ' } else { *byte };
    }
}

/// Appends an object to the output. A large one that is not shared is not copied: the output so far is inserted before
/// it (see `bench/LEDGER.md`).
pub(crate) fn object(out: &mut Vec<u8>, object: Body) {
    match object {
        Body::Own(object) | Body::Text(object) if object.as_str().len() >= LARGE => {
            let mut text = object.into_string().into_bytes();
            text.splice(0..0, out.drain(..));
            *out = text;
        }
        object => out.extend_from_slice(object.as_str().as_bytes()),
    }
}

/// Appends an object without its closing brace: the caller writes more members, and the brace.
pub(crate) fn open_object(out: &mut Vec<u8>, object: Body) {
    let empty = object.is_empty();
    self::object(out, object);
    out.pop();
    if !empty {
        out.push(b',');
    }
}

/// The size, in bytes, from which a result is not copied.
pub(crate) const LARGE: usize = 4 << 10;

/// Writes an id in the JSON type it was received in.
pub(crate) fn id(out: &mut Vec<u8>, id: &RequestId) {
    json(out, id);
}

/// Writes a value of one of this workspace's types.
///
/// # Panics
///
/// Never: these types serialize, and a value of the user's that does not was refused when it became a `RawObject`.
pub(crate) fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(&mut *out, value).expect("a value of ours prints as JSON into memory");
}
