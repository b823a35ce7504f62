//! The curl lines of `docs/http.md`, run against a server, and what the page says comes of them: with curl where there
//! is one, and without it everywhere.
//!
//! A block `sh` is a command, the block `text` after it its answer, and `text,stream` what then comes on the last stream
//! that was left open. `PINTLE_BLESS=1` writes what comes into the page.

use std::{collections::VecDeque, net::SocketAddr, process::Stdio};

use pintle::{
    Server,
    server::{Cx, http::HttpServing, tool},
};
use tokio::{
    io::{AsyncReadExt, BufReader},
    net::TcpListener,
    process::{Child, ChildStdout, Command},
};

use crate::support::{
    http_server::soon,
    http_socket::{Hands, request},
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/http.md");
/// Where the page says that the server is, and what it calls its sessions.
const ADDRESS: &str = "127.0.0.1:8000";
const SESSION: &str = "5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e";

/// The server of the page.
async fn serve() -> HttpServing {
    let count = |cx: Cx| async move {
        cx.progress(1.0, 2.0).await;
        cx.progress(2.0, 2.0).await;
        "two"
    };
    let server =
        Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" })).tool(tool("count", count));
    let http = server.http().unwrap().at("/mcp").two_endpoints("/sse", "/messages");
    http.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_page_is_right_without_curl() {
    let serving = serve().await;
    let address = serving.address();
    let came = follow(address, async |line| {
        let words = words(line);
        let mut by_hand = ByHand::begin(address, &words).await;
        match words.iter().any(|word| word == "-sN") {
            true => Output::Open(Box::new(Stream::ByHand(by_hand))),
            false => Output::All(by_hand.all().await),
        }
    })
    .await;
    if std::env::var_os("PINTLE_BLESS").is_some() {
        std::fs::write(PAGE, &came).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PAGE).unwrap(), came);
}

#[tokio::test]
async fn the_page_is_right_with_curl() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().await.is_err() {
        eprintln!("skipped: no curl");
        return;
    }
    let serving = serve().await;
    let came = follow(serving.address(), async |line| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec {line}")).stdout(Stdio::piped()).kill_on_drop(true);
        // Whatever proxy there is, it is not for this machine.
        command.env("no_proxy", "127.0.0.1");
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        if line.contains("-sN") {
            return Output::Open(Box::new(Stream::Curl { _child: Box::new(child), output }));
        }
        let mut text = String::new();
        soon(output.read_to_string(&mut text)).await.unwrap();
        assert!(soon(child.wait()).await.unwrap().success(), "{line}");
        Output::All(text)
    })
    .await;
    assert_eq!(std::fs::read_to_string(PAGE).unwrap(), came);
}

/// What a command prints: all of it, or what has come so far of something that goes on.
enum Output {
    All(String),
    Open(Box<Stream>),
}

enum Stream {
    ByHand(ByHand),
    /// The process goes when this does.
    Curl {
        _child: Box<Child>,
        output: BufReader<ChildStdout>,
    },
}

impl Stream {
    /// The next event.
    async fn event(&mut self) -> String {
        let mut text = String::new();
        while !text.ends_with("\n\n") {
            match self {
                Self::ByHand(by_hand) => text.push_str(&by_hand.piece().await.expect("the stream goes on")),
                Self::Curl { output, .. } => text.push(char::from(soon(output.read_u8()).await.unwrap())),
            }
        }
        text
    }
}

/// Does what the page says; the page with what came of it.
async fn follow(address: SocketAddr, run: impl AsyncFn(&str) -> Output) -> String {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (mut came, mut message) = (String::new(), VecDeque::<String>::new());
    let (mut session, mut stream) = (SESSION.to_owned(), None::<Stream>);
    let mut commands = 0;
    let mut blocks = page.split("```");
    while let (Some(prose), Some(block)) = (blocks.next(), blocks.next()) {
        came += prose;
        let (info, inside) = block.split_once('\n').unwrap();
        let mut inside = inside.to_owned();
        match info {
            "sh" => {
                commands += 1;
                let line = inside.replace(ADDRESS, &address.to_string()).replace(SESSION, &session);
                let output = match run(line.trim()).await {
                    Output::All(text) => text,
                    Output::Open(mut open) => {
                        let first = open.event().await;
                        stream = Some(*open);
                        first
                    }
                };
                // The id is new each time it is given out.
                for mark in ["mcp-session-id: ", "?session="] {
                    if let Some((_, after)) = output.split_once(mark) {
                        session = after[..SESSION.len()].to_owned();
                    }
                }
                message.push_back(output);
            }
            "text" => inside = message.pop_front().expect("an answer comes after its command"),
            "text,stream" => inside = stream.as_mut().expect("a stream that is open").event().await,
            _ => {}
        }
        let shown = inside.replace("\r\n", "\n").replace(&session, SESSION);
        let shown: Vec<_> = shown.trim_end().lines().filter(|line| !line.starts_with("date: ")).collect();
        came += &format!("```{info}\n{}\n```", shown.join("\n"));
    }
    assert!(message.is_empty() && commands >= 10, "{commands} commands");
    let (_, rest) = page.rsplit_once("```").unwrap();
    came + rest
}

/// The words of a line for the shell: quotes are single ones, and a line may go on in the next.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in line.replace("\\\n", " ").chars() {
        match c {
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What curl would do with these words, as far as the page needs it.
struct ByHand {
    hands: Hands,
    /// Whether the head is printed too.
    head: bool,
    /// Whether the status is printed at the end.
    status: bool,
}

impl ByHand {
    async fn begin(address: SocketAddr, words: &[String]) -> Self {
        let (mut method, mut body, mut fields, mut target) = (None, None, Vec::new(), "");
        let (mut head, mut status) = (false, false);
        let mut words = words.iter().map(String::as_str);
        assert_eq!(words.next(), Some("curl"));
        while let Some(word) = words.next() {
            match word {
                "-H" => fields.push(words.next().unwrap().split_once(": ").unwrap()),
                "-d" => body = words.next(),
                "-X" => method = words.next(),
                "-w" => status = words.next() == Some("%{http_code}"),
                "-s" | "-sN" => {}
                "-si" => head = true,
                url => target = url.strip_prefix(&format!("http://{address}")).expect("an option we know"),
            }
        }
        let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let mut text = request(&format!("{method} {target}"), &[], body.unwrap_or_default());
        let (usual, body) =
            text.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned())).unwrap();
        // Not more than curl would send.
        let keeps = |line: &&str| !line.starts_with("accept:") && !line.starts_with("content-type:");
        text = usual.lines().filter(keeps).map(|line| format!("{line}\r\n")).collect();
        text += if fields.iter().any(|(name, _)| *name == "Accept") { "" } else { "accept: */*\r\n" };
        text.extend(fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
        let mut hands = Hands::connect(address).await;
        hands.write(&format!("{text}\r\n{body}")).await;
        Self { hands, head, status }
    }

    async fn all(&mut self) -> String {
        let answer = self.hands.answer().await;
        let status = if self.status { answer.status.to_string() } else { String::new() };
        format!("{}{}{status}", if self.head { &*answer.head } else { "" }, answer.body)
    }

    /// What comes next on a stream.
    async fn piece(&mut self) -> Option<String> {
        self.hands.chunk().await
    }
}
