//! `pintle tap` in front of a server at a URL.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use super::{fresh_file, methods};
use crate::support::{
    HttpServing, free_address::free_address, machine::Machine, pintle, run, scripted_http::serve_with, typed,
};

/// The proxy, in a process that ends with this value.
struct HttpTap {
    process: Child,
    url: String,
}

impl HttpTap {
    fn start(url: &str, path: &Path) -> Self {
        Self::of(pintle(), url, path)
    }

    fn of(mut command: Command, target: &str, path: &Path) -> Self {
        let mut process = command
            .args(["tap", target, "--listen", "127.0.0.1:0", "-o", path.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }

    /// Sends a request without a body, and returns the connection.
    fn get(&self, headers: &str) -> TcpStream {
        let address = self.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        // The body of HTTP/1.0 ends with the connection.
        write!(connection, "GET /mcp HTTP/1.0\r\n{headers}\r\n").unwrap();
        connection
    }
}

impl Drop for HttpTap {
    fn drop(&mut self) {
        // Interrupted, it writes the rest of its recording.
        #[cfg(unix)]
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.process),
            rustix::process::Signal::INT,
        )
        .unwrap();
        #[cfg(not(unix))]
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_configured_url_is_reached_with_the_headers_of_its_entry() {
    let address = serve_with(|request| {
        let key = request.header("x-api-key").unwrap_or("none").to_owned();
        ("200 OK", "text/plain", key)
    });
    let machine = Machine::new("tap-url");
    let entry =
        serde_json::json!({"url": format!("http://{address}/here"), "headers": {"X-Api-Key": "s3cret"}});
    machine.write("home/.cursor/mcp.json", &serde_json::json!({"mcpServers": {"remote": entry}}).to_string());
    let path = fresh_file("tap-name.jsonl");
    let tap = HttpTap::of(machine.command(), "remote", &path);
    let mut answer = String::new();
    tap.get("host: 127.0.0.1\r\n").read_to_string(&mut answer).unwrap();
    assert!(tap.url.ends_with("/here") && answer.ends_with("\r\n\r\ns3cret"), "{}: {answer}", tap.url);
    drop(tap);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("s3cret\""), "the header is in the recording");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_client_finds_the_same_server() {
    let demo = HttpServing::demo();
    let path = fresh_file("tap-http.jsonl");
    let tap = HttpTap::start(&demo.url, &path);
    assert!(tap.url.starts_with("http://127.0.0.1:") && tap.url.ends_with("/mcp"), "{}", tap.url);
    for era in ["stateless", "session"] {
        for line in [&["ls"][..], &["call", "sail", "to=bergen", "-v"], &["read", "harbour://notice"]] {
            let with = |url: &str| {
                let words =
                    [&line[..1], &[url], &line[1..], &["--era", era, "--header", "X-Api-Key: s3cret"]]
                        .concat();
                let printed = typed(&words);
                let stderr = printed.stderr.replace(url, "URL");
                (printed.code, printed.stdout, stderr)
            };
            assert_eq!(with(&tap.url), with(&demo.url));
        }
    }
    drop(tap);
    let recorded = methods(&path);
    for method in
        ["→ server/discover", "→ initialize", "→ notifications/initialized", "← notifications/progress"]
    {
        assert!(recorded.iter().any(|recorded| recorded == method), "{method}: {recorded:?}");
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("s3cret") && text.contains("x-api-key"), "{text}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn events_are_passed_on_as_they_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}/mcp?key=s3cret", listener.local_addr().unwrap());
    let (received, go_on) = mpsc::channel::<()>();
    let serving = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0);
        }
        write!(connection, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-hop: 1\r\nconnection: close, x-hop\r\n\r\n").unwrap();
        write!(connection, ": a comment\ndata: {{\"jsonrpc\":\"2.0\",\ndata: \"method\":\"a\"}}\n\n")
            .unwrap();
        // The rest is sent only after the client has this.
        go_on.recv().unwrap();
        write!(connection, "id: 1\r\ndata: no JSON\r\n\r\ndata: unfinished").unwrap();
        head
    });
    let path = fresh_file("tap-events.jsonl");
    let tap = HttpTap::start(&upstream, &path);
    let mut connection = tap
        .get("host: localhost\r\naccept-encoding: gzip\r\nte: trailers\r\nauthorization: Bearer s3cret\r\n");
    let first = ": a comment\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"a\"}\n\n";
    let mut response = String::new();
    let mut chunk = [0; 1024];
    while !response.ends_with(first) {
        let count = connection.read(&mut chunk).unwrap();
        assert_ne!(count, 0, "{response}");
        response.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
    }
    received.send(()).unwrap();
    connection.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, format!("{first}id: 1\r\ndata: no JSON\r\n\r\ndata: unfinished"));
    assert!(head.contains("text/event-stream") && !head.contains("x-hop"), "{head}");
    let sent = serving.join().unwrap().to_ascii_lowercase();
    assert!(sent.starts_with("get /mcp?key=s3cret http/1.1\r\n"), "{sent}");
    for line in ["authorization: bearer s3cret\r\n", "accept-encoding: identity\r\n"] {
        assert!(sent.contains(line), "{sent}");
    }
    assert!(!sent.contains("\r\nte:") && !sent.contains("host: localhost\r\n"), "{sent}");
    drop(tap);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    assert_eq!(methods(&path), ["← a"]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn web_pages_and_other_hosts_are_refused() {
    let demo = HttpServing::demo();
    let path = fresh_file("tap-guard.jsonl");
    let tap = HttpTap::start(&demo.url, &path);
    for headers in ["host: evil.example\r\n", "host: localhost\r\norigin: https://evil.example\r\n"] {
        let mut response = String::new();
        tap.get(headers).read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.0 403 ") || response.starts_with("HTTP/1.1 403 "), "{response}");
    }
    drop(tap);
    // Nothing was passed on.
    assert!(methods(&path).is_empty());
    std::fs::remove_file(&path).unwrap();
    let open = typed(&["tap", &demo.url, "--listen", "0.0.0.0:0", "--insecure-no-auth"]);
    assert_eq!(open.code, Some(1));
    assert!(open.stderr.contains("anybody could use `0.0.0.0:0`"), "{}", open.stderr);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let path = fresh_file("tap-nothing.jsonl");
    let free = free_address();
    let tap = HttpTap::start(&format!("http://{free}/mcp"), &path);
    let called = run(pintle().args(["ping", &tap.url]));
    assert_eq!(called.code, Some(2), "{called:?}");
    assert!(called.stderr.contains("could not be reached"), "{called:?}");
    drop(tap);
    assert!(std::fs::read_to_string(&path).unwrap().contains("\"status\":502"));
    std::fs::remove_file(&path).unwrap();
}
