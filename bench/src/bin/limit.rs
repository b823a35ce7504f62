//! The limit server: `limit stdio`, or `limit http`, which says its address in one line.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => Ok(bench::limit::stdio::serve()?),
        Some("http") => Ok(bench::limit::http::run()?),
        _ => Err("say `http` or `stdio`".into()),
    }
}
