//! The log of a service, on standard error: the events of the libraries, and what the service itself notes.

mod line;
mod queue;

use std::{sync::Arc, time::SystemTime};

use tracing::{
    Event, Metadata, Subscriber,
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::filter::Targets;

use super::stream::Stream;
use line::LogLine;

pub(crate) use line::LogFormat;
pub(super) use queue::LogQueue;

/// The target of what a service itself notes.
pub(crate) const SERVICE: &str = "pintle::service";

/// The filter of a log, and the form of its lines.
#[derive(Clone, Debug)]
pub(crate) struct LogSettings {
    pub(crate) filter: Targets,
    pub(crate) format: LogFormat,
}

/// The subscriber of a service. It writes events, and has no spans.
struct ServiceLog {
    settings: LogSettings,
    queue: Arc<LogQueue>,
}

/// Has the events of this process written from now on.
pub(super) fn start(settings: LogSettings) -> std::io::Result<Arc<LogQueue>> {
    // A terminal gets no control characters, because lines have none.
    let mut stream = Stream::stderr(true);
    let lost = {
        let format = settings.format;
        move |lost: u64| {
            let mut line = LogLine::new(SystemTime::now(), tracing::Level::WARN, SERVICE);
            line.message(format_args!("{lost} lines of the log are lost: standard error is read too slowly"));
            line.text(format)
        }
    };
    let queue = Arc::new(LogQueue::start(move |line| stream.write_bytes(line), lost)?);
    let log = ServiceLog { settings, queue: queue.clone() };
    // A process has one service.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(queue)
}

impl Subscriber for ServiceLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.settings.filter.would_enable(metadata.target(), metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let of_targets = self.settings.filter.iter().map(|(_, level)| level);
        of_targets.chain(self.settings.filter.default_level()).max()
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine::new(SystemTime::now(), *event.metadata().level(), event.metadata().target());
        event.record(&mut line);
        self.queue.write(line.text(self.settings.format));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
