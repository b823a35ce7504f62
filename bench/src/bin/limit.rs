//! The limit server: `limit stdio`, or `limit http`, which says its address in one line.
#![expect(clippy::print_stdout, reason = "a program that is started by another")]

use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => Ok(bench::limit::stdio::serve()?),
        Some("http") => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            bench::limit::http::serve(listener).await;
            Ok(())
        }),
        _ => Err("say `http` or `stdio`".into()),
    }
}
