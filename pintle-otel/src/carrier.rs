//! The trace context in `_meta`.

use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::TraceContextExt as _,
};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use pintle::types::{Meta, RawObject, TraceParent, keys};
use serde_json::value::to_raw_value;

const KEYS: [&str; 3] = [keys::TRACEPARENT, keys::TRACESTATE, keys::BAGGAGE];

/// The members of `_meta` that a trace context is made of.
struct TraceMembers<'a>(&'a mut Meta);

impl Extractor for TraceMembers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    fn keys(&self) -> Vec<&str> {
        KEYS.into_iter().filter(|key| self.0.get(key).is_some()).collect()
    }
}

impl Injector for TraceMembers<'_> {
    fn set(&mut self, key: &str, value: String) {
        // A state that is empty has no meaning.
        if KEYS.contains(&key) && !value.is_empty() {
            self.0.insert(key, value);
        }
    }
}

/// Returns the context that a message carries, on top of `base`. What is malformed is ignored.
pub(crate) fn extract(mut meta: Meta, base: &Context) -> Context {
    // The propagator takes digits that are missing for zeros.
    let parent = meta.get(keys::TRACEPARENT).and_then(|parent| parent.as_str());
    if parent.is_none_or(|parent| parent.parse::<TraceParent>().is_err()) {
        meta.remove(keys::TRACEPARENT);
    }
    let members = TraceMembers(&mut meta);
    let context = TraceContextPropagator::new().extract_with_context(base, &members);
    BaggagePropagator::new().extract_with_context(&context, &members)
}

/// Returns the params of a request with the trace context of `context` in place of their own. `None` if there is no trace.
pub(crate) fn carrying(params: &RawObject, context: &Context) -> Option<RawObject> {
    if !context.span().span_context().is_valid() {
        return None;
    }
    // A `_meta` that is not an object is refused where it is used.
    let mut meta: Meta = params.decode_member("_meta").ok()?.unwrap_or_default();
    for key in KEYS {
        meta.remove(key);
    }
    let mut members = TraceMembers(&mut meta);
    TraceContextPropagator::new().inject_context(context, &mut members);
    BaggagePropagator::new().inject_context(context, &mut members);
    Some(params.with("_meta", &to_raw_value(meta.as_object()).ok()?))
}
