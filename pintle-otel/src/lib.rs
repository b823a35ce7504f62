//! OpenTelemetry for [`pintle`] servers and clients: a span and a duration for every request, in one trace across both.
//!
//! ```
//! use opentelemetry_sdk::{metrics::SdkMeterProvider, trace::SdkTracerProvider};
//! use pintle::{Client, Server, server::tool};
//! use pintle_otel::Telemetry;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> pintle::Result<()> {
//! // A program adds its exporters to these.
//! let (tracers, meters) = (SdkTracerProvider::builder().build(), SdkMeterProvider::builder().build());
//! let telemetry = Telemetry::new(&tracers, &meters);
//! let server = telemetry.observe_server(Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" })));
//! let client = telemetry.observe_client(Client::new("demo", "1.0.0"));
//! let dice = client.connect(server.in_process()?).await?;
//! assert_eq!(dice.call_tool("roll", ()).await?.text(), "4");
//! # Ok(()) }
//! ```
//!
//! The trace context is in `_meta` of each request (`traceparent`, `tracestate`, `baggage`), in every revision and on every transport.
//! The page `docs/telemetry.md` of the repository has the names, and what is recorded when.

mod carrier;
mod client;
#[cfg(doctest)]
mod guide;
pub mod names;
mod operation;
mod server;
mod telemetry;

pub use telemetry::Telemetry;
