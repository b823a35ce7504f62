//! Serves what the clients of the matrix ask for: `interop-server stdio`, or `interop-server http`, which says where.
#![expect(clippy::print_stdout, reason = "whoever starts it has to know where it is")]

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let server = interop::server::server();
    if std::env::args().nth(1).as_deref() != Some("http") {
        return server.serve_stdio().await;
    }
    let serving = server.serve_http("127.0.0.1:0").await?;
    println!("http://{}/mcp", serving.address());
    serving.wait().await;
    Ok(())
}
