//! Pintle's server of the comparison: `served stdio`, or `served http`, which says its address in one line. A number
//! behind that makes it one with so many tools.
#![expect(clippy::print_stdout, reason = "a program that is started by another")]

use tokio::net::TcpListener;

/// As many sessions as are opened by any measurement, and then some.
const SESSIONS: usize = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let server = match std::env::args().nth(2) {
            Some(tools) => bench::served::with_tools(tools.parse()?),
            None => bench::served::server(),
        };
        match std::env::args().nth(1).as_deref() {
            Some("stdio") => Ok(server.serve_stdio().await?),
            Some("http") => {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                let serving = server
                    .http()?
                    .max_sessions(SESSIONS)
                    .max_sessions_per_address(SESSIONS)
                    .at("/mcp")
                    .serve(listener)?;
                println!("{address}");
                serving.wait().await;
                Ok(())
            }
            _ => Err("say `http` or `stdio`".into()),
        }
    })
}
