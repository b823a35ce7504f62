//! An axum application with an MCP server that requires access tokens, besides routes of its own.
//!
//! ```sh
//! cargo run --package pintle-oauth --example axum_app --features server -- \
//!     https://login.example.com 0.0.0.0:8080 https://mcp.example.com/mcp
//! ```
//!
//! The arguments are the authorization server, the address to listen on, and the URL that clients know. Without the last, the
//! URL is that of the address, for trying it on one machine.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{env, io, net::SocketAddr, time::Duration};

use axum::{
    Router,
    extract::{ConnectInfo, Request},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use pintle::{
    Server,
    proto::http::Guard,
    server::{PeerAddress, http::Cors, tool},
};
use pintle_oauth::server::{Jwt, Principal, Protected};
use tokio::net::TcpListener;
use tower_layer::Layer;

fn server() -> Server {
    let whoami = |caller: Principal| async move { caller.subject().to_owned() };
    let clear = || async { "cleared" };
    Server::new("notes", "1.0.0")
        .tool(tool("whoami", whoami).description("The user who calls.").read_only())
        // Refused with 403, and the missing scope, before the handler runs.
        .tool(tool("clear", clear).description("Delete all notes.").requires(["notes:write"]))
}

/// Leaves the client's address for the limits per address, since only axum knows it.
async fn with_address(
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(PeerAddress(address));
    next.run(request).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let issuer = arguments.next().ok_or("name the authorization server, as `https://login.example.com`")?;
    let listener = TcpListener::bind(arguments.next().as_deref().unwrap_or("127.0.0.1:8080")).await?;
    let url = match arguments.next() {
        Some(url) => url,
        None => format!("http://{}/mcp", listener.local_addr()?),
    };

    // Tokens have to be issued for this URL, and requests have to be for its host.
    let protected = Protected::new(url.as_str(), Jwt::new(issuer.as_str())?)?;
    let host = url.parse::<http::Uri>()?.host().ok_or("the URL has no host")?.to_owned();
    let guard = Guard::hosts([host]);
    let mcp = server().http()?.guard(guard.clone());

    let app = Router::new()
        // `Cors` is the outer layer, so that pages can read a 401 response.
        .route_service("/mcp", Cors::new(guard).layer(protected.layer(mcp.clone())))
        .route_service(&protected.metadata_path(), protected.metadata())
        .route("/healthz", get(|| async { "ok" }))
        .layer(middleware::from_fn(with_address));

    println!("{url}");
    let stop = async move {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        // Streams would keep axum waiting: they are closed, and running calls have ten seconds to complete.
        mcp.shutdown(Duration::from_secs(10)).await;
    };
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).with_graceful_shutdown(stop).await.map_err(io::Error::into)
}
