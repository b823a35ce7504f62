//! Pintle's server of the comparison: `served stdio`, or `served http`, which says its address in one line. A number
//! behind that makes it one with so many tools.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let server = match std::env::args().nth(2) {
            Some(tools) => bench::served::with_tools(tools.parse()?),
            None => bench::served::server(),
        };
        match std::env::args().nth(1).as_deref() {
            Some("stdio") => Ok(server.serve_stdio().await?),
            Some("http") => Ok(bench::served::serve_http(server).await?),
            _ => Err("say `http` or `stdio`".into()),
        }
    })
}
