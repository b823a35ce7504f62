use pintle_types::{RawObject, RequestId};
use serde_json::Value;

/// Optional metadata of a request.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// Requests progress notifications.
    pub progress: bool,
    /// Requests log messages of this level and above for this request. In a session the level is set for all requests
    /// with `logging/setLevel`, and this is ignored.
    pub log_level: Option<&'a str>,
    /// The `traceparent` of the W3C trace context.
    pub traceparent: Option<&'a str>,
    /// The `tracestate` of the W3C trace context.
    pub tracestate: Option<&'a str>,
    /// The W3C `baggage`.
    pub baggage: Option<&'a str>,
    /// The client's capabilities for this request, in place of those of its profile. Ignored in the session era, which negotiates
    /// them once.
    pub capabilities: Option<&'a RawObject>,
    /// Whether a result may have a type of an extension that this client does not know, because the request is that of another
    /// client. It applies with [`capabilities`](Self::capabilities).
    pub any_result_type: bool,
}

impl Extras<'_> {
    /// Appends the members of `_meta` that are the same in both eras.
    ///
    /// `own` is the caller's `_meta`, if there is one. A progress token in it requests progress; the token itself is
    /// replaced, because only the engine knows which are in use.
    pub(super) fn write(&self, id: i64, own: Option<&RawObject>, out: &mut String) {
        if self.wants_progress(own) {
            push(out, "progressToken", &id.to_string());
        }
        for (name, value) in
            [("traceparent", self.traceparent), ("tracestate", self.tracestate), ("baggage", self.baggage)]
        {
            if let Some(value) = value {
                push(out, name, &Value::from(value).to_string());
            }
        }
    }

    /// Returns whether a member of the caller's `_meta` is replaced by one of these.
    pub(super) fn replaces(&self, name: &str) -> bool {
        match name {
            "progressToken" => true,
            "traceparent" => self.traceparent.is_some(),
            "tracestate" => self.tracestate.is_some(),
            "baggage" => self.baggage.is_some(),
            _ => false,
        }
    }

    /// Whether members are added to `_meta`.
    pub(super) fn adds_members(&self) -> bool {
        self.progress
            || [self.log_level, self.traceparent, self.tracestate, self.baggage].iter().any(Option::is_some)
    }

    pub(super) fn wants_progress(&self, own: Option<&RawObject>) -> bool {
        let asks =
            |own: &RawObject| own.decode_member::<RequestId>("progressToken").is_ok_and(|it| it.is_some());
        self.progress || own.is_some_and(asks)
    }
}

/// Appends one member to the inside of an object.
pub(super) fn push(out: &mut String, printed_name: &str, value: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.extend(["\"", printed_name, "\":", value]);
}
