//! Pintle's server of the comparison: `served stdio`, or `served http`, which says its address in one line.
#![expect(clippy::print_stdout, reason = "a program that is started by another")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let server = bench::served::server();
        match std::env::args().nth(1).as_deref() {
            Some("stdio") => Ok(server.serve_stdio().await?),
            Some("http") => {
                let serving = server.serve_http("127.0.0.1:0").await?;
                println!("{}", serving.address());
                serving.wait().await;
                Ok(())
            }
            _ => Err("say `http` or `stdio`".into()),
        }
    })
}
