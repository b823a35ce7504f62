use pintle_types::{RawObject, RequestId};
use serde_json::Value;

/// What may be asked for beside a request itself.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// Be told how it goes on.
    pub progress: bool,
    /// Be sent log messages of this level and above, about this request. In a session the level is set for all
    /// requests at once, with `logging/setLevel`, and this is left out.
    pub log_level: Option<&'a str>,
    /// The W3C trace context of the caller.
    pub traceparent: Option<&'a str>,
    /// What vendors add to it.
    pub tracestate: Option<&'a str>,
    /// What the application adds to it.
    pub baggage: Option<&'a str>,
}

impl Extras<'_> {
    /// Appends the members of `_meta` that both eras write alike.
    ///
    /// `own` is the caller's own `_meta`, if there is one. A progress token in it is a wish for progress; the token itself must be
    /// ours, because only the engine knows which are in use.
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

    /// Whether the caller's own `_meta` has a member that this would write.
    pub(super) fn replaces(&self, name: &str) -> bool {
        match name {
            "progressToken" => true,
            "traceparent" => self.traceparent.is_some(),
            "tracestate" => self.tracestate.is_some(),
            "baggage" => self.baggage.is_some(),
            _ => false,
        }
    }

    pub(super) fn wants_progress(&self, own: Option<&RawObject>) -> bool {
        let asks =
            |own: &RawObject| own.decode_member::<RequestId>("progressToken").is_ok_and(|it| it.is_some());
        self.progress || own.is_some_and(asks)
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { progress, log_level, traceparent, tracestate, baggage } = self;
        !progress && [log_level, traceparent, tracestate, baggage].iter().all(|part| part.is_none())
    }
}

/// Appends one member to the inside of an object.
pub(super) fn push(out: &mut String, printed_name: &str, value: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.extend(["\"", printed_name, "\":", value]);
}
