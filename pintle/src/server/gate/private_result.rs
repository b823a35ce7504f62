//! Results that depend on who called.

use pintle_proto::server::Body;
use pintle_types::{RawValue, method};
use serde_json::{Value, value::to_raw_value};

use crate::server::Cx;

/// Makes a result one for the caller alone: no cache may share it, and it has no links to hidden resources.
pub(super) fn private(cx: &Cx, body: Body) -> Body {
    let body = without_hidden(cx, body);
    let is_shared = body.get("cacheScope").is_some_and(|scope| scope != PRIVATE);
    match RawValue::from_string(PRIVATE.to_owned()) {
        Ok(scope) if is_shared => body.with("cacheScope", &scope).into(),
        _ => body,
    }
}

/// The `cacheScope` of a result for one caller.
const PRIVATE: &str = "\"private\"";

/// Removes links to hidden resources, and embedded ones, from the result of a call.
fn without_hidden(cx: &Cx, body: Body) -> Body {
    let member = match cx.method() {
        method::TOOLS_CALL => "content",
        method::PROMPTS_GET => "messages",
        _ => return body,
    };
    if !body.as_str().contains("\"uri\"") {
        return body;
    }
    let Ok(Some(Value::Array(mut blocks))) = body.decode_member::<Value>(member) else { return body };
    let count = blocks.len();
    blocks.retain(|block| {
        let content = block.get("content").filter(|_| member == "messages").unwrap_or(block);
        let uri = content.get("uri").or_else(|| content.get("resource")?.get("uri"));
        !uri.and_then(Value::as_str).is_some_and(|uri| cx.snapshot().hides_resource(&cx.scope(), uri))
    });
    match to_raw_value(&blocks) {
        Ok(blocks_text) if blocks.len() < count => body.with(member, &blocks_text).into(),
        _ => body,
    }
}
