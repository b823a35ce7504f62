//! Targets that are no MCP server: each has its message, its exit code, and something to type next.

use std::fmt::Write as _;

use crate::support::{
    Printed,
    free_address::free_address,
    scripted_http::{serve, serve_with},
    snapshot, typed,
};

#[test]
fn each_has_its_message_and_its_code() {
    let html = "<html><body>Welcome!</body></html>";
    let closed = free_address().to_string();
    let mut found = String::new();
    for (what, address) in [
        ("port closed", closed),
        ("401", serve("401 Unauthorized", "text/plain", "who are you?")),
        ("403", serve("403 Forbidden", "text/plain", "not you")),
        ("401 with a text about 403", serve("401 Unauthorized", "text/plain", "upstream: HTTP status 403")),
        (
            "403, and 501 for GET",
            serve_with(|request| match request.head.starts_with("GET") {
                true => ("501 Not Implemented", "text/plain", "no streams".to_owned()),
                false => ("403 Forbidden", "text/plain", "host `vm:8000` is not allowed here".to_owned()),
            }),
        ),
        ("404", serve("404 Not Found", "text/plain", "nothing here")),
        ("HTML page", serve("200 OK", "text/html", html)),
        ("HTML page with 404", serve("404 Not Found", "text/html", html)),
        ("500", serve("500 Internal Server Error", "text/plain", "out of cheese")),
    ] {
        let printed = typed(&["ls", &format!("http://{address}/mcp")]);
        record(what, &printed, &address, &mut found);
    }
    let plain = serve("200 OK", "text/html", html);
    record("TLS failure", &typed(&["ls", &format!("https://{plain}/mcp")]), &plain, &mut found);
    record("wrong URL", &typed(&["ls", "http://exa mple.com/mcp"]), "", &mut found);
    record("no host", &typed(&["ls", "https:///mcp"]), "", &mut found);
    record("missing program", &typed(&["ls", "--", "no-such-program"]), "", &mut found);
    #[cfg(unix)]
    {
        let shell = |script: &str| typed(&["ls", "--timeout", "200ms", "--", "sh", "-c", script]);
        record("crashing server", &shell("echo 'error: no API key' >&2; exit 3"), "", &mut found);
        record("crash with a text about 401", &shell("echo 'status 401'; exit 3"), "", &mut found);
        record("silent server", &shell("cat > /dev/null"), "", &mut found);
        record("program that is no server", &shell("echo Hello"), "", &mut found);
        let missing = typed(&["ls", "--cwd", "/no/such/folder", "--", "sh"]);
        record("missing directory", &missing, "", &mut found);
        snapshot::assert_file(&found, "transcripts/bad_targets.txt");
    }
}

fn record(what: &str, printed: &Printed, address: &str, found: &mut String) {
    let Printed { code, stdout, stderr } = printed;
    assert_eq!(stdout, "", "{what}");
    let stderr = if address.is_empty() { stderr.clone() } else { stderr.replace(address, "ADDRESS") };
    assert!(stderr.lines().last().is_some_and(|line| line.starts_with("  try: ")), "{what}: {stderr}");
    writeln!(found, "{what} [{}]\n{stderr}", code.unwrap()).unwrap();
}
