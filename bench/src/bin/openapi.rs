//! A server of an OpenAPI document on stdio, for `cargo xtask openapi`: `openapi DOCUMENT REPORT`. When its client has gone, it
//! writes to the report what became of the operations, and what all of that took.

use std::{collections::BTreeMap, fs};

use pintle::Server;
use pintle_openapi::OpenApi;
use serde_json::{Value, json};

/// Where the documents are from that name no server.
const DOCUMENT_URL: &str = "https://api.example.com/openapi.json";
/// The tools of a page: all of a large document are more than an answer may have.
const PAGE: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(document), Some(report)) = (words.next(), words.next()) else {
        return Err("say `openapi DOCUMENT REPORT`".into());
    };
    let tools = OpenApi::from_file(document)?.document_url(DOCUMENT_URL).build()?;
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for one in tools.left_out() {
        *left_out.entry(general(&one.reason)).or_default() += 1;
    }
    let found = json!({ "tools": tools.tools().count(), "left_out": left_out });
    // Now, too: a client that cannot take the list ends this process.
    write(&report, found.clone())?;
    let server = Server::new("openapi", "1.0.0").page_size(PAGE).provider(tools);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(server.serve_stdio())?;
    write(&report, found)
}

/// Writes a report with what has been used so far.
fn write(report: &str, mut found: Value) -> Result<(), Box<dyn std::error::Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    found["peak_kb"] = peak.ok_or("there is no `VmHWM`")?.trim().parse::<u64>()?.into();
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    found["cpu_ms"] = (cpu.tv_sec * 1_000 + cpu.tv_nsec / 1_000_000).into();
    Ok(fs::write(report, found.to_string())?)
}

/// Returns a reason without what is only of one operation, so that equal ones can be counted.
fn general(reason: &str) -> String {
    let parts = reason.split('`').enumerate();
    parts.map(|(number, part)| if number % 2 == 0 { part } else { "…" }).collect::<Vec<_>>().join("`")
}
