//! `cargo xtask budget`: how many crates a user compiles for each of ours.

use crate::cargo::{Cargo, Failure};
use crate::workspace::{crates, pulled_in};

/// A build that someone would ask for, and the most crates it may take (normal and build, ours included).
struct Budget {
    package: &'static str,
    /// Shown in the table: what the build is for.
    build: &'static str,
    /// Arguments of `cargo tree` besides the package.
    features: &'static str,
    limit: usize,
}

/// The one place for these numbers.
const BUDGETS: &[Budget] = &[
    // Serde with its derive and serde_json are 15 crates; none is ours to drop. Four of them keep the order of members.
    Budget { package: "pintle-types", build: "all features", features: "--all-features", limit: 16 },
    Budget { package: "pintle-proto", build: "all features", features: "--all-features", limit: 20 },
    Budget { package: "pintle-macros", build: "all features", features: "--all-features", limit: 5 },
    // Serde with its derive, percent-encoding and strsim. These two and the crate itself are 3 in everything below, 2 where
    // an HTTP client brings percent-encoding anyway.
    Budget { package: "pintle-uri", build: "all features", features: "--all-features", limit: 10 },
    // The cipher for sealed states is 7 of them; it is the one that TLS has too.
    Budget {
        package: "pintle",
        build: "server on stdio",
        features: "--no-default-features --features server,stdio",
        limit: 51,
    },
    // The validator and its two regular expression engines are 49 of them.
    Budget {
        package: "pintle",
        build: "server on stdio, with validation",
        features: "--no-default-features --features server,stdio,validation",
        limit: 110,
    },
    // With HTTP/2 at most 15 more than on stdio.
    Budget {
        package: "pintle",
        build: "server over HTTP",
        features: "--no-default-features --features http-server",
        limit: 59,
    },
    // HTTP/2 is 9 crates, for the few who need it without a proxy that speaks it for them.
    Budget {
        package: "pintle",
        build: "server over HTTP, with HTTP/2",
        features: "--no-default-features --features http-server,http2",
        limit: 65,
    },
    Budget {
        package: "pintle",
        build: "client of child processes",
        features: "--no-default-features --features client,child",
        limit: 44,
    },
    // The hyper client is 15 of them; what reads proxy variables as curl does is 3.
    Budget {
        package: "pintle",
        build: "client over HTTP",
        features: "--no-default-features --features http-client",
        limit: 54,
    },
    // rustls with ring is 15 more.
    Budget {
        package: "pintle",
        build: "client over HTTPS",
        features: "--no-default-features --features tls",
        limit: 69,
    },
    // The client over HTTPS, and what ring does not bring by itself.
    Budget { package: "pintle-oauth", build: "client over HTTPS", features: "", limit: 73 },
    // The server over HTTP, and a client over HTTPS for the keys of issuers.
    Budget {
        package: "pintle-oauth",
        build: "server over HTTP",
        features: "--no-default-features --features server,tls",
        limit: 75,
    },
    // Server and client, and nothing else.
    Budget { package: "pintle-tasks", build: "server and client", features: "", limit: 50 },
    Budget { package: "pintle-relay", build: "all features", features: "--all-features", limit: 51 },
    // The client of child processes, and a parser of JSON with comments.
    Budget {
        package: "pintle-host",
        build: "host of child processes",
        features: "--no-default-features --features child",
        limit: 46,
    },
    // The client over HTTPS with child processes too, and the two parsers; the one for TOML is 5 of them, one of
    // which writes it.
    Budget { package: "pintle-host", build: "all features", features: "--all-features", limit: 81 },
    // The server over HTTP, and 54 of the Redis client; 24 of those read its address, and 7 follow a cluster or Sentinels. TLS is
    // 12 more.
    Budget { package: "pintle-redis", build: "server over HTTP", features: "", limit: 114 },
    Budget { package: "pintle-redis", build: "all features", features: "--all-features", limit: 126 },
    // Server and client are 49; the others are the API of OpenTelemetry, and its SDK for traces and metrics.
    Budget { package: "pintle-otel", build: "server and client", features: "", limit: 68 },
    // The smallest server, with tokio's blocking threads, and 13 of SQLite and what builds it.
    Budget { package: "pintle-sqlite", build: "all features", features: "--all-features", limit: 59 },
    // The server of HTTP APIs, whose requests tools can send too; child processes, tokio's macros and schemars.
    Budget { package: "pintle-serve", build: "all features", features: "--all-features", limit: 128 },
    // The parser of YAML is 4 with its errors, and JSON the rest.
    Budget { package: "pintle-yaml", build: "all features", features: "--all-features", limit: 18 },
    // Server and client are 49, and the reader of front matter is 5 with its parser.
    Budget { package: "pintle-skills", build: "server and client", features: "", limit: 55 },
    // A server, the client of HTTPS, the validator, and the reader of YAML; `pintle-oauth` says what a private network is.
    Budget { package: "pintle-openapi", build: "server over HTTPS", features: "", limit: 124 },
    // Server and client, and both over HTTP.
    Budget { package: "pintle-testing", build: "server and client", features: "", limit: 51 },
    Budget { package: "pintle-testing", build: "all features", features: "--all-features", limit: 68 },
    // All of `pintle` but sockets, with HTTPS; the command itself brings tokio's macros, and clap with its derive is 7. The
    // configuration files of hosts are 7, and logins 1: `pintle-oauth`, which has no others. What edits the lines of
    // `repl` is 8, and what writes manual pages 2. The Redis of a gateway is 50; 24 of those read its address,
    // and 6 follow a cluster or Sentinels. Tasks, the relay, served tools and APIs are crates of our own. The reader of YAML is 5, and what
    // finds the line of a mistake in it 1. The filter of the log of services is 1.
    Budget { package: "pintle-cli", build: "all features", features: "--all-features", limit: 209 },
];

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    let ours = crates()?;
    let mut over = Vec::new();
    for budget in BUDGETS.iter().filter(|budget| ours.iter().any(|krate| krate.name == budget.package)) {
        let Budget { package, build, features, limit } = budget;
        let count = pulled_in(package, features)?.len();
        println!("    {package:<16} {build:<33} {count:>4} crates, at most {limit}");
        if count > *limit {
            over.push(format!("`{package}` ({build}) pulls in {count} crates, its budget is {limit}"));
        }
    }
    for krate in ours.iter().filter(|krate| krate.published) {
        if !BUDGETS.iter().any(|budget| budget.package == krate.name) {
            over.push(format!(
                "`{}` is published and has no budget; add a row to xtask/src/budget.rs",
                krate.name
            ));
        }
    }
    if over.is_empty() {
        return Ok(());
    }
    over.push(format!("to see them: {}", Cargo::new("tree --package <crate> --edges normal,build")));
    Err(Failure::new(over.join("\n  "), "cargo xtask budget"))
}
