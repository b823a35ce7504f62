//! Pintle's client of the comparison: `client http <url> <calls> <in flight> [session]`, or
//! `client stdio <calls> <in flight> [session] <server>…`.
#![expect(clippy::print_stdout, reason = "a program that is started by another")]

use bench::drive::Job;
use pintle::{
    Client,
    client::{Mode, http::Http},
    transport::Child,
};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::read(std::env::args().skip(1))?;
    let mode = if job.session() { Mode::Legacy } else { Mode::Auto };
    let client = Client::new("bench", "1.0.0").mode(mode);
    let server = if let Some(url) = job.url() {
        client.connect(Http::new(url)?).await?
    } else {
        let (program, arguments) = job.program();
        client.connect(Child::spawn(program, arguments)?).await?
    };
    let echo = move |text: &'static str| {
        let server = server.clone();
        async move { server.call_tool("echo", json!({ "text": text })).await.map(|result| result.text()) }
    };
    println!("{}", job.run(echo).await?);
    Ok(())
}
