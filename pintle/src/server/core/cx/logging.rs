//! Log messages to clients, through `tracing`.

use std::{
    collections::HashMap,
    error::Error,
    fmt,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle_types::{JsonObject, schema::LoggingLevel};
use serde_json::Value;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::layer::{Context, Layer};

use super::{Cx, WeakCx, current};

/// Creates a `tracing_subscriber` layer that sends the events of a call to the client that made it.
///
/// A client receives the levels that it requested; the server has to declare [`Server::logging`](crate::server::Server::logging).
/// Events in tasks and threads that carry the call's span (`in_current_span`) are sent too. The target is the `logger`, the
/// message is `msg` in `data`, and fields are its other members. `TRACE` is sent as `debug`; a field `mcp.level` names a level
/// that `tracing` lacks.
///
/// Clients may not be trusted: filter this layer if events of other crates should not be sent to them.
///
/// ```
/// use pintle::{Server, server::tool};
/// use tracing_subscriber::{layer::SubscriberExt, registry};
///
/// async fn backup() -> &'static str {
///     tracing::info!(files = 3, "copied");
///     tracing::warn!(mcp.level = "alert", "the disk is full");
///     "done"
/// }
///
/// let server = Server::new("backup", "1.0.0").logging().tool(tool("backup", backup));
/// let subscriber = registry().with(pintle::logging::layer());
/// // tracing::subscriber::set_global_default(subscriber)?;
/// # let _ = (server, subscriber);
/// ```
pub fn layer() -> Logging {
    Logging { spans: RwLock::default(), known: AtomicUsize::new(0) }
}

/// A `tracing_subscriber` layer that sends log messages to clients. Created by [`layer`].
#[derive(Debug)]
pub struct Logging {
    /// The open spans that were created during a call, with the call.
    spans: RwLock<HashMap<u64, WeakCx>>,
    /// The number of these spans, so that the lock is not taken while there are none.
    known: AtomicUsize,
}

impl Logging {
    fn of_span(&self, id: &span::Id) -> Option<WeakCx> {
        if self.known.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.spans.read().unwrap_or_else(PoisonError::into_inner).get(&id.into_u64()).cloned()
    }
}

impl<S: Subscriber> Layer<S> for Logging {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: Context<'_, S>) {
        let call = match attributes.parent() {
            Some(parent) => self.of_span(parent),
            None if attributes.is_root() => None,
            None => current::current(),
        };
        if let Some(call) = call {
            let mut spans = self.spans.write().unwrap_or_else(PoisonError::into_inner);
            spans.insert(id.into_u64(), call);
            self.known.store(spans.len(), Ordering::Release);
        }
    }

    fn on_enter(&self, id: &span::Id, _: Context<'_, S>) {
        if let Some(call) = self.of_span(id) {
            current::enter(Some(id.into_u64()), call);
        }
    }

    fn on_exit(&self, id: &span::Id, _: Context<'_, S>) {
        if self.known.load(Ordering::Acquire) > 0 {
            current::leave(Some(id.into_u64()));
        }
    }

    fn on_close(&self, id: span::Id, _: Context<'_, S>) {
        if self.known.load(Ordering::Acquire) > 0 {
            let mut spans = self.spans.write().unwrap_or_else(PoisonError::into_inner);
            spans.remove(&id.into_u64());
            self.known.store(spans.len(), Ordering::Release);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let call = match event.parent() {
            Some(parent) => self.of_span(parent),
            None => current::current(),
        };
        let Some(cx) = call.and_then(|call| call.upgrade()) else { return };
        let metadata = event.metadata();
        if is_ours(metadata) {
            return;
        }
        let level = level(*metadata.level());
        // Dropped before anything is formatted, unless a field of the event names its level.
        let own = metadata.fields().field(LEVEL).is_some();
        if !own && !cx.wants_log(level) {
            return;
        }
        forward(&cx, event, level);
    }
}

fn forward(cx: &Cx, event: &Event<'_>, level: LoggingLevel) {
    let mut message = Message { level, ..Message::default() };
    event.record(&mut message);
    if cx.wants_log(message.level) {
        let logger = message.logger.as_deref().unwrap_or_else(|| event.metadata().target());
        cx.log_if_room(message.level, logger, &message.data);
    }
}

/// Returns whether an event is one of this project. Those are not sent to clients: they name panics and peers.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    let name = metadata.target().split("::").next().unwrap_or_default();
    matches!(name, "pintle" | "pintle_host" | "pintle_oauth" | "pintle_proto" | "pintle_types" | "pintle_uri")
}

fn level(level: Level) -> LoggingLevel {
    match level {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

/// The field that names a level.
const LEVEL: &str = "mcp.level";

/// The content of an event.
struct Message {
    level: LoggingLevel,
    logger: Option<String>,
    data: JsonObject,
}

impl Default for Message {
    fn default() -> Self {
        Self { level: LoggingLevel::Debug, logger: None, data: JsonObject::new() }
    }
}

impl Message {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), &value) {
            (LEVEL, Value::String(name)) => self.level = name.parse().unwrap_or(self.level),
            ("logger", Value::String(name)) => self.logger = Some(name.clone()),
            ("message", _) => drop(self.data.insert("msg".to_owned(), value)),
            (name, _) => drop(self.data.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, value.to_string().into());
    }
}
