//! Errors of handlers: any error type, a message for the model, and the details for the log.
//!
//! A client reads the outermost message of an error. Its sources go to the log, which this program writes to standard error.

use anyhow::{Context as _, bail};
use pintle::server::{RequestError, ToolError};

/// Count the lines of a file.
#[pintle::tool(read_only)]
async fn count_lines(path: String) -> anyhow::Result<usize> {
    if path.is_empty() {
        bail!("`path` is empty: name a file");
    }
    // The model reads this context. The reason of the operating system is the source: it is logged.
    let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await?;
    Ok(text.context("the file cannot be read: name another")?.lines().count())
}

/// Halve a number.
#[pintle::tool(read_only)]
async fn half(number: String) -> Result<i64, ToolError> {
    let number: i64 = number.parse()?; // The model reads "invalid digit found in string".
    if number % 2 != 0 {
        Err(format!("{number} is odd: give an even number"))?; // A text will do.
    }
    Ok(number / 2)
}

/// The quotient of two numbers.
#[pintle::resource("numbers://{dividend}/by/{divisor}")]
async fn quotient(dividend: i64, divisor: i64) -> Result<String, RequestError> {
    if divisor == 0 {
        return Err(RequestError::bad_request("nothing can be divided by 0"));
    }
    Ok(dividend.checked_div(divisor).ok_or("the quotient is too large")?.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let server = pintle::Server::new("errors", "1.0.0");
    server.routes(pintle::routes![count_lines, half, quotient]).serve_stdio().await
}
