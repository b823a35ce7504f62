//! A server to deploy: HTTP by a flag, limits, a log, and a shutdown that lets running calls complete.
//!
//! ```sh
//! cargo run --example http_server --features http-server -- --http 127.0.0.1:8000
//! cargo run --example http_server --features http-server -- --http 0.0.0.0:8000 --allow-host mcp.example.com
//! ```

use std::time::Duration;

use pintle::{
    Server,
    proto::Limits,
    server::{Cx, Listen},
};

/// Make a cup of coffee.
#[pintle::tool(destructive = false, open_world = false)]
async fn brew(cx: Cx) -> &'static str {
    for step in 0..3 {
        cx.progress(f64::from(step), 3.0).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "ready"
}

/// Waits for a signal to stop: Ctrl-C, or SIGTERM from systemd, Docker or Kubernetes.
async fn stop_requested() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

#[tokio::main]
async fn main() -> pintle::Result<()> {
    // Standard output is the wire when the server is started with `--stdio`.
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();

    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    let server = Server::new("kitchen", "1.0.0")
        .limits(limits)
        .call_timeout(Duration::from_secs(60))
        .tools(pintle::tools![brew]);

    let listen = Listen::from_args().configure_http(|http| Ok(http.max_sessions(1_000)));
    let serving = server.serve_on(listen).await?;
    tracing::info!(url = serving.url(), "serving");

    let ended = tokio::select! {
        ended = serving.wait() => ended?,
        stopped = stop_requested() => {
            stopped?;
            tracing::info!("stopping");
            serving.close(Duration::from_secs(10)).await?
        }
    };
    tracing::info!("stopped: {ended}");
    Ok(())
}
