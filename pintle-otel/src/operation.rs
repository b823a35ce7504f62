//! The span and the duration of one request.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Instant,
};

use opentelemetry::{
    Context, KeyValue,
    metrics::Histogram,
    trace::{Status, TraceContextExt as _},
};
use pintle::{
    message_log::Redactor,
    types::{ErrorCode, RpcError, method},
};

use crate::names;

/// The limit of names and ids in attributes, in characters. The peer chooses them.
pub(crate) const MAX_NAME: usize = 128;
/// The limit of URIs and messages in attributes, in characters.
pub(crate) const MAX_TEXT: usize = 1024;

/// Removes queries and users of the URLs in messages.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

const METHOD_NOT_FOUND: i64 = ErrorCode::METHOD_NOT_FOUND.0 as i64;
const OVERLOADED: i64 = ErrorCode::OVERLOADED.0 as i64;
const INVALID_PARAMS: i64 = ErrorCode::INVALID_PARAMS.0 as i64;

/// The limit of names of requests that have succeeded, and of others.
const MAX_SUCCEEDED: usize = 512;
const MAX_FAILED: usize = 64;

/// Whether a code of an error is one that the specifications define or reserve for servers. Peers choose the others.
fn is_usual(code: i64) -> bool {
    matches!(code, -32700 | -32603..=-32600 | -32099..=-32000 | OVERLOADED)
}

/// Whether the protocol defines a method.
fn is_of_protocol(method: &str) -> bool {
    let of_tasks = || method::tasks_extension::REQUESTS.iter().any(|row| row.name == method);
    method::find(method).is_some() || method == "_OTHER" || of_tasks()
}

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
    pub(crate) series: Arc<SeriesNames>,
}

/// The names of tools, prompts and methods that durations are recorded with, and that the protocol does not define. Peers choose them, so
/// their number is limited: one peer could use up the series of all.
#[derive(Debug, Default)]
pub(crate) struct SeriesNames(Mutex<KnownNames>);

#[derive(Debug, Default)]
struct KnownNames {
    succeeded: HashSet<Box<str>>,
    failed: HashSet<Box<str>>,
}

impl SeriesNames {
    /// Whether a duration is recorded with a name.
    fn admits(&self, name: &str, has_succeeded: bool) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.succeeded.contains(name) {
            return true;
        }
        let (names, limit) = match has_succeeded {
            true => (&mut known.succeeded, MAX_SUCCEEDED),
            // Some servers answer a call of a tool that they do not have with a result.
            false => (&mut known.failed, MAX_FAILED),
        };
        names.contains(name) || (names.len() < limit && names.insert(name.into()))
    }
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
        // Errors name what was asked for. What is cut off is not redacted first: it may be long.
        let message = Some(cut(&REDACTOR.text(&cut(&error.message, 4 * MAX_TEXT)), MAX_TEXT));
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
        let (series, has_succeeded) = (&self.series, ending.error.is_none());
        let is_named = |name: &KeyValue| series.admits(&name.value.as_str(), has_succeeded);
        self.attributes.extend(self.name.take().filter(|name| !ending.names_nothing() && is_named(name)));
        for pair in self.attributes.iter_mut().filter(|pair| pair.key.as_str() == names::METHOD) {
            let is_known = is_of_protocol(&pair.value.as_str()) || is_named(pair);
            if ending.code == Some(METHOD_NOT_FOUND) || !is_known {
                pair.value = "_OTHER".into();
            }
        }
        let recorded = |value: String| match ending.code {
            Some(code) if !is_usual(code) => "_OTHER".to_owned(),
            _ => value,
        };
        if let Some(code) = ending.code {
            span.set_attribute(KeyValue::new(names::STATUS_CODE, code.to_string()));
            self.attributes.push(KeyValue::new(names::STATUS_CODE, recorded(code.to_string())));
        }
        if let Some(error) = ending.error {
            span.set_attribute(KeyValue::new(names::ERROR_TYPE, error.clone().into_owned()));
            self.attributes.push(KeyValue::new(names::ERROR_TYPE, recorded(error.into_owned())));
            span.set_status(Status::error(ending.message.unwrap_or_default()));
        }
        span.end();
        if let Some(duration) = &self.duration {
            duration.record(self.started.elapsed().as_secs_f64(), &self.attributes);
        }
    }
}
