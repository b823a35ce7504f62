//! The span and the duration of one request.

use std::{borrow::Cow, time::Instant};

use opentelemetry::{
    Context, KeyValue,
    metrics::Histogram,
    trace::{Status, TraceContextExt as _},
};
use pintle::types::{ErrorCode, RpcError};

use crate::names;

/// The limit of names and ids in attributes, in characters. The peer chooses them.
pub(crate) const MAX_NAME: usize = 128;
/// The limit of URIs and messages in attributes, in characters.
pub(crate) const MAX_TEXT: usize = 1024;

const METHOD_NOT_FOUND: i64 = ErrorCode::METHOD_NOT_FOUND.0 as i64;
const INVALID_PARAMS: i64 = ErrorCode::INVALID_PARAMS.0 as i64;

/// Returns the beginning of a text.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

/// A request that is in progress: its span, and what its duration is recorded with.
pub(crate) struct Operation {
    /// The context with the span.
    pub(crate) context: Context,
    /// The histogram, unless the duration is recorded elsewhere.
    pub(crate) duration: Option<Histogram<f64>>,
    pub(crate) started: Instant,
    /// The attributes of the duration. Their values are bounded.
    pub(crate) attributes: Vec<KeyValue>,
    /// The name of the tool or the prompt, which becomes an attribute of the duration if it exists.
    pub(crate) name: Option<KeyValue>,
}

/// How a request ended.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    error: Option<Cow<'static, str>>,
    code: Option<i64>,
    message: Option<String>,
}

impl Ending {
    /// Returns the ending of a request that succeeded.
    pub(crate) fn success() -> Self {
        Self::default()
    }

    /// Returns the ending of a request that failed with an error of this type.
    pub(crate) fn failure(kind: &'static str) -> Self {
        Self { error: Some(kind.into()), ..Self::default() }
    }

    /// Returns the ending of a request that failed with an error of the protocol.
    pub(crate) fn rpc(error: &RpcError) -> Self {
        let code = i64::from(error.code.0);
        let message = Some(cut(&error.message, MAX_TEXT));
        Self { error: Some(code.to_string().into()), code: Some(code), message }
    }

    /// Returns whether the request may have named what does not exist.
    fn names_nothing(&self) -> bool {
        matches!(self.code, Some(INVALID_PARAMS | METHOD_NOT_FOUND))
            || self.error.as_deref() == Some("not_found")
    }
}

impl Operation {
    /// Ends the span, and records the duration.
    pub(crate) fn end(mut self, ending: Ending) {
        let span = self.context.span();
        // Names that no tool and no method has would make the number of series unbounded.
        if !ending.names_nothing() {
            self.attributes.extend(self.name.take());
        }
        if ending.code == Some(METHOD_NOT_FOUND) {
            self.attributes.retain(|pair| pair.key.as_str() != names::METHOD);
            self.attributes.push(KeyValue::new(names::METHOD, "_OTHER"));
        }
        if let Some(code) = ending.code {
            let code = KeyValue::new(names::STATUS_CODE, code.to_string());
            span.set_attribute(code.clone());
            self.attributes.push(code);
        }
        if let Some(error) = ending.error {
            let error = KeyValue::new(names::ERROR_TYPE, error.into_owned());
            span.set_attribute(error.clone());
            self.attributes.push(error);
            span.set_status(Status::error(ending.message.unwrap_or_default()));
        }
        span.end();
        if let Some(duration) = &self.duration {
            duration.record(self.started.elapsed().as_secs_f64(), &self.attributes);
        }
    }
}
