use std::{fmt, sync::Arc, time::Instant};

use opentelemetry::{
    Context, InstrumentationScope, KeyValue,
    global::{self, BoxedTracer, ObjectSafeTracerProvider},
    metrics::{Histogram, Meter, MeterProvider},
    trace::{Link, SpanBuilder, SpanKind, TraceContextExt as _, Tracer as _},
};
use pintle::{
    Client, Server, client, message_log::Redactor, server, server::Target, transport::TransportKind,
    types::method as method_names,
};

use crate::{
    client::observe_message,
    names,
    operation::{MAX_NAME, MAX_TEXT, Operation, SeriesNames, cut},
    server::{observe_call, observe_outgoing},
};

/// Spans and durations of the requests of servers and clients.
///
/// Cheap to clone. [`observe_server`](Self::observe_server) and [`observe_client`](Self::observe_client) return a server or a client
/// with it: add it last, so that it is the outermost layer.
#[derive(Clone)]
pub struct Telemetry {
    instruments: Arc<Instruments>,
    links_callers: bool,
}

struct Instruments {
    tracer: BoxedTracer,
    client_duration: Histogram<f64>,
    server_duration: Histogram<f64>,
    redactor: Redactor,
    series: Arc<SeriesNames>,
}

/// The facts of a request or a notification, of either side.
pub(crate) struct OperationFacts<'a> {
    pub(crate) kind: SpanKind,
    pub(crate) method: &'a str,
    pub(crate) target: Option<Target<'a>>,
    pub(crate) revision: Option<&'a str>,
    pub(crate) request_id: Option<String>,
    pub(crate) client_address: Option<String>,
    pub(crate) transport: TransportKind,
}

impl Telemetry {
    /// Creates telemetry that is recorded with these providers.
    pub fn new(tracers: &impl ObjectSafeTracerProvider, meters: &impl MeterProvider) -> Self {
        let tracer = BoxedTracer::new(tracers.boxed_tracer(scope()));
        Self::of(tracer, &meters.meter_with_scope(scope()))
    }

    /// Creates telemetry that is recorded with the global providers of the process. Set those first.
    ///
    /// ```
    /// use pintle_otel::Telemetry;
    ///
    /// // After `opentelemetry::global::set_tracer_provider` and `set_meter_provider`:
    /// let server = Telemetry::global().observe_server(pintle::Server::new("notes", "1.0.0"));
    /// ```
    pub fn global() -> Self {
        Self::of(global::tracer_with_scope(scope()), &global::meter_with_scope(scope()))
    }

    fn of(tracer: BoxedTracer, meter: &Meter) -> Self {
        let histogram = |name, description| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(description);
            histogram.with_boundaries(names::BOUNDARIES.to_vec()).build()
        };
        let instruments = Instruments {
            tracer,
            client_duration: histogram(names::CLIENT_DURATION, "Duration of requests at their sender."),
            server_duration: histogram(names::SERVER_DURATION, "Duration of requests at their receiver."),
            redactor: Redactor::new(),
            series: Arc::default(),
        };
        Self { instruments: Arc::new(instruments), links_callers: false }
    }

    /// Has spans of servers link to the spans of their callers, instead of becoming part of their traces, and ignores their baggage.
    /// For servers that anyone may call: a caller chooses the id of its trace, and whether it is sampled.
    #[must_use]
    pub fn link_callers(self) -> Self {
        Self { links_callers: true, ..self }
    }

    /// Records the requests and notifications that a server receives, and the requests that its calls send to clients.
    #[must_use]
    pub fn observe_server(&self, server: Server) -> Server {
        let (calls, outgoing) = (self.clone(), self.clone());
        server
            .layer(&server::around(move |cx, next| observe_call(calls.clone(), cx, next)))
            .around_outgoing(move |request, next| observe_outgoing(outgoing.clone(), request, next))
    }

    /// Records the requests and notifications that a client sends, and those that it receives from servers.
    pub fn observe_client(&self, client: Client) -> Client {
        let telemetry = self.clone();
        client.layer(&client::around(move |cx, next| observe_message(telemetry.clone(), cx, next)))
    }

    /// Returns whether the spans of callers become links.
    pub(crate) fn links_callers(&self) -> bool {
        self.links_callers
    }

    /// Starts the span of a request or a notification.
    pub(crate) fn start(&self, facts: OperationFacts<'_>, parent: &Context, links: Vec<Link>) -> Operation {
        let OperationFacts { kind, method, target, revision, request_id, client_address, transport } = facts;
        let method = &*cut(method, MAX_NAME);
        let mut attributes = vec![KeyValue::new(names::METHOD, method.to_owned())];
        attributes
            .extend(revision.map(|revision| KeyValue::new(names::PROTOCOL_VERSION, revision.to_owned())));
        let network = match transport {
            TransportKind::Stdio | TransportKind::Child => Some("pipe"),
            TransportKind::Tcp | TransportKind::Http => Some("tcp"),
            TransportKind::Unix => Some("unix"),
            _ => None,
        };
        attributes.extend(network.map(|network| KeyValue::new(names::TRANSPORT, network)));
        if transport == TransportKind::Http {
            attributes.push(KeyValue::new(names::NETWORK_PROTOCOL, "http"));
        }
        let name = match &target {
            Some(Target::Tool(name)) => Some(KeyValue::new(names::TOOL, cut(name, MAX_NAME))),
            Some(Target::Prompt(name)) => Some(KeyValue::new(names::PROMPT, cut(name, MAX_NAME))),
            _ => None,
        };
        if method == method_names::TOOLS_CALL {
            attributes.push(KeyValue::new(names::OPERATION, names::EXECUTE_TOOL));
        }
        let mut of_span = attributes.clone();
        of_span.extend(name.clone());
        if let Some(Target::Resource(uri)) = &target {
            let uri = self.instruments.redactor.url(uri);
            of_span.push(KeyValue::new(names::RESOURCE_URI, cut(&uri, MAX_TEXT)));
        }
        of_span.extend(request_id.map(|id| KeyValue::new(names::REQUEST_ID, cut(&id, MAX_NAME))));
        of_span.extend(client_address.map(|address| KeyValue::new(names::CLIENT_ADDRESS, address)));
        let title = match &name {
            Some(name) => format!("{method} {}", name.value.as_str()),
            None => method.to_owned(),
        };
        let duration = match kind {
            SpanKind::Client => Some(self.instruments.client_duration.clone()),
            SpanKind::Server => Some(self.instruments.server_duration.clone()),
            _ => None,
        };
        let builder =
            SpanBuilder::from_name(title).with_kind(kind).with_attributes(of_span).with_links(links);
        let span = self.instruments.tracer.build_with_context(builder, parent);
        let (context, started, series) =
            (parent.with_span(span), Instant::now(), self.instruments.series.clone());
        Operation { context, duration, started, attributes, name, series }
    }
}

/// Returns the name of a notification of a peer as it is recorded: nothing refuses one that nobody knows, and its name is the peer's.
pub(crate) fn bounded_notification(method: &str) -> &str {
    let is_known =
        method_names::find(method).is_some() || method == method_names::tasks_extension::NOTIFICATIONS_TASKS;
    if is_known { method } else { "_OTHER" }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("pintle").with_version(env!("CARGO_PKG_VERSION")).build()
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("links_callers", &self.links_callers).finish_non_exhaustive()
    }
}
