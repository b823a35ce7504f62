//! A server and a client whose requests are one trace, exported with OTLP over HTTP.
//!
//! Start a collector that listens at `http://127.0.0.1:4318`, or give another address:
//!
//! ```sh
//! cargo run -p pintle-otel --example telemetry -- http://127.0.0.1:4318
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{error::Error, time::Duration};

use opentelemetry::{
    Context,
    trace::{FutureExt as _, TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use pintle::{
    Client, Server,
    client::{Answer, http::Http},
    server::{Cx, ToolError, tool},
};
use pintle_otel::Telemetry;
use serde_json::json;

/// The providers of one program. Here both programs are in one process, so each has its own.
struct Providers {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
}

impl Providers {
    fn new(service: &'static str, collector: &str) -> Result<Self, Box<dyn Error>> {
        let resource = Resource::builder().with_service_name(service).build();
        let spans = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpJson)
            .with_endpoint(format!("{collector}/v1/traces"))
            .build()?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpJson)
            .with_endpoint(format!("{collector}/v1/metrics"))
            .build()?;
        Ok(Self {
            tracers: SdkTracerProvider::builder()
                .with_batch_exporter(spans)
                .with_resource(resource.clone())
                .build(),
            meters: SdkMeterProvider::builder()
                .with_periodic_exporter(metrics)
                .with_resource(resource)
                .build(),
        })
    }

    fn telemetry(&self) -> Telemetry {
        Telemetry::new(&self.tracers, &self.meters)
    }

    /// Exports what is left. It waits for the collector, so not on a thread of the runtime.
    async fn shutdown(self) -> Result<(), Box<dyn Error>> {
        let ended = tokio::task::spawn_blocking(move || (self.tracers.shutdown(), self.meters.shutdown()));
        let (tracers, meters) = ended.await?;
        tracers?;
        meters?;
        Ok(())
    }
}

async fn book(cx: Cx) -> Result<String, ToolError> {
    match cx.elicit::<()>("agreed", "Book the table for four?").await?.accepted() {
        Some(()) => Ok("Booked.".to_owned()),
        None => Ok("Not booked.".to_owned()),
    }
}

/// Books a table, with all spans and durations exported to the collector. Returns the id of the trace.
pub(crate) async fn run(collector: &str) -> Result<String, Box<dyn Error>> {
    let of_server = Providers::new("tables", collector)?;
    let server = Server::new("tables", "1.0.0").tool(tool("book", book).description("Books a table."));
    let server = of_server.telemetry().observe_server(server);
    let serving = server.serve_http("127.0.0.1:0").await?;

    let of_client = Providers::new("assistant", collector)?;
    let client = Client::new("assistant", "1.0.0").on_elicit(|_| async { Answer::accept(json!({})) });
    let client = of_client.telemetry().observe_client(client);

    // The span of the program's own work is the root of the trace.
    let tracer = of_client.tracers.tracer("assistant");
    let evening = Context::current_with_span(tracer.start("plan the evening"));
    let work = async {
        let tables = client.connect(Http::new(format!("http://{}/mcp", serving.address()))?).await?;
        println!("{}", tables.call_tool("book", ()).await?.text());
        tables.close().await;
        Ok::<_, Box<dyn Error>>(())
    };
    work.with_context(evening.clone()).await?;
    let trace = evening.span().span_context().trace_id().to_string();
    evening.span().end();

    serving.shutdown(Duration::from_secs(1)).await;
    of_client.shutdown().await?;
    of_server.shutdown().await?;
    Ok(trace)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let collector = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:4318".to_owned());
    println!("trace {}", run(&collector).await?);
    Ok(())
}
