use std::{fmt, io, process, sync::Arc, time::Duration};

use http::Uri;
use pintle::{Error, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Consent, Visit};
use crate::shared::form;

/// The limit of concurrent connections. A browser opens a few.
const CONNECTIONS: usize = 16;
/// The limit of bytes of a request head: a code, a state, and a browser's headers.
const HEAD: usize = 32 << 10;
/// The time in which a request has to arrive on a connection.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection that failed.
const PAUSE: Duration = Duration::from_millis(50);
const PATH: &str = "/callback";

type Open = dyn Fn(&str) -> io::Result<()> + Send + Sync;

/// Opens a browser, and listens on a loopback address for the redirect.
///
/// Requests of other programs and pages are rejected: only one with the `state` of this login ends it.
///
/// ```
/// use pintle_oauth::client::{Loopback, OAuth};
///
/// let oauth = OAuth::login("My app", Loopback::new(|url| {
///     println!("Go to {url}");
///     Ok(())
/// }));
/// ```
#[derive(Clone)]
pub struct Loopback {
    open: Arc<Open>,
    port: u16,
    timeout: Duration,
}

impl Loopback {
    /// Opens the login page with `open`.
    pub fn new(open: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), port: 0, timeout: Duration::from_secs(300) }
    }

    /// Opens the login page in the system's browser.
    pub fn browser() -> Self {
        Self::new(open_browser)
    }

    /// Listens on this port. By default it is the port of the last login if that is free, or any other: authorization
    /// servers have to accept any port of a loopback address.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets how long to wait for the user. The default is 5 minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl Consent for Loopback {
    type Visit = Listening;

    async fn begin(&self, before: Option<&str>) -> Result<Listening> {
        let before = before.and_then(|address| address.parse::<Uri>().ok()?.port_u16());
        let mut listener = None;
        if self.port == 0
            && let Some(port) = before
        {
            // Another program may have taken it.
            listener = TcpListener::bind(("127.0.0.1", port)).await.ok();
        }
        let listener = match listener {
            Some(listener) => listener,
            None => TcpListener::bind(("127.0.0.1", self.port)).await.map_err(|error| {
                let message =
                    format!("cannot listen for the redirect of the login on port {}: {error}", self.port);
                Error::Io(io::Error::new(error.kind(), message))
            })?,
        };
        let port = listener.local_addr()?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
        Ok(Listening { listener, redirect_uri, open: self.open.clone(), timeout: self.timeout })
    }
}

/// One login of a [`Loopback`], which is listening for the redirect.
pub struct Listening {
    listener: TcpListener,
    redirect_uri: String,
    open: Arc<Open>,
    timeout: Duration,
}

impl Visit for Listening {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    async fn ask(self, url: &str) -> Result<String> {
        (self.open)(url).map_err(|error| {
            Error::Io(io::Error::new(error.kind(), format!("the browser could not be opened: {error}")))
        })?;
        let state = url.split_once('?').and_then(|(_, query)| state_of(query)).map(Arc::from);
        let waited = timeout(self.timeout, came_back(self.listener, state)).await;
        waited.unwrap_or_else(|_| {
            Err(Error::Refused(format!(
                "the login was not completed within {:?}; try again, or raise `Loopback::timeout`",
                self.timeout
            )))
        })
    }
}

/// Waits for the redirect and returns its query. The browser may request other things before, and open connections that it
/// never uses; other programs may send another `state`.
async fn came_back(listener: TcpListener, state: Option<Arc<str>>) -> Result<String> {
    enum Event {
        Accepted(Option<TcpStream>),
        Visited(Option<String>),
    }
    let listener = Arc::new(listener);
    let accept = || {
        let listener = listener.clone();
        async move {
            match listener.accept().await {
                Ok((socket, _)) => Event::Accepted(Some(socket)),
                // The peer has closed the connection, or there are too many open files: the next one may succeed.
                Err(_) => {
                    sleep(PAUSE).await;
                    Event::Accepted(None)
                }
            }
        }
    };
    let mut tasks = JoinSet::new();
    let mut accepting = false;
    loop {
        if !accepting && tasks.len() < CONNECTIONS {
            tasks.spawn(accept());
            accepting = true;
        }
        match tasks.join_next().await {
            Some(Ok(Event::Accepted(socket))) => {
                accepting = false;
                let Some(socket) = socket else { continue };
                let state = state.clone();
                tasks.spawn(async move {
                    let visited = timeout(READ_TIMEOUT, visited(socket, state.as_deref())).await;
                    Event::Visited(visited.ok().flatten())
                });
            }
            Some(Ok(Event::Visited(Some(query)))) => return Ok(query),
            _ => {}
        }
    }
}

/// Serves one request and returns its query if it has the expected `state`.
async fn visited(mut socket: TcpStream, state: Option<&str>) -> Option<String> {
    let mut head: Vec<u8> = Vec::new();
    // Each byte is scanned once, however the request is split.
    let mut looked = 0_usize;
    while !head[looked..].windows(4).any(|end| end == b"\r\n\r\n") {
        looked = head.len().saturating_sub(3);
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await {
            Ok(read @ 1..) if head.len() + read <= HEAD => head.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().and_then(|line| std::str::from_utf8(line).ok());
    let query = line.and_then(query);
    let ours = query.filter(|query| state.is_none() || state_of(query).as_deref() == state);
    let (status, text) = match (query, ours) {
        (_, Some(_)) => ("200 OK", "You can close this page and go back to the program."),
        (Some(_), None) => {
            let message =
                "The program is not waiting for this login. Go back to the program and follow its link.";
            ("400 Bad Request", message)
        }
        (None, None) => ("404 Not Found", "There is nothing here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // The query is valid even if the browser does not read the response.
    let _ = socket.write_all(answer.as_bytes()).await;
    let _ = socket.shutdown().await;
    ours.map(str::to_owned)
}

/// Returns the `state` of a query, if there is exactly one.
fn state_of(query: &str) -> Option<String> {
    let mut states = form::pairs(query)?.into_iter().filter(|(name, _)| name == "state");
    let (_, state) = states.next()?;
    states.next().is_none().then_some(state)
}

/// Returns the query of a redirect.
fn query(line: &str) -> Option<&str> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    let answers = query.split('&').any(|pair| pair.starts_with("code=") || pair.starts_with("error="));
    answers.then_some(query)
}

/// Opens an address with the system's program for it. The address is one argument; no shell is involved.
fn open_browser(url: &str) -> io::Result<()> {
    let mut command = if cfg!(target_os = "macos") {
        process::Command::new("open")
    } else if cfg!(windows) {
        let mut command = process::Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        process::Command::new("xdg-open")
    };
    let null = process::Stdio::null;
    let mut child = command.arg(url).stdin(null()).stdout(null()).stderr(null()).spawn()?;
    // It passes the address on and exits; its exit status has to be collected.
    std::thread::spawn(move || child.wait());
    Ok(())
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback")
            .field("port", &self.port)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    async fn get(port: u16, target: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        socket.write_all(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_browser_comes_back_after_asking_for_other_things() {
        let (opened, open) = mpsc::channel();
        let loopback = Loopback::new(move |url| opened.send(url.to_owned()).map_err(io::Error::other));
        let visit = loopback.begin(None).await.unwrap();
        let port = visit.redirect_uri().parse::<Uri>().unwrap().port_u16().unwrap();
        let asked = tokio::spawn(visit.ask("https://as/authorize"));
        let idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert!(get(port, "/favicon.ico").await.starts_with("HTTP/1.1 404"));
        assert!(get(port, "/callback").await.starts_with("HTTP/1.1 404"));
        assert!(get(port, "/callback?code=c&state=s").await.starts_with("HTTP/1.1 200"));
        assert_eq!(asked.await.unwrap().unwrap(), "code=c&state=s");
        assert_eq!(open.recv().unwrap(), "https://as/authorize");
        drop(idle);
        let again = loopback.begin(Some(&format!("http://127.0.0.1:{port}/callback"))).await.unwrap();
        assert_eq!(again.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));
    }

    #[tokio::test]
    async fn only_who_has_the_state_of_the_login_ends_it() {
        let visit = Loopback::new(|_| Ok(())).begin(None).await.unwrap();
        let port = visit.redirect_uri().parse::<Uri>().unwrap().port_u16().unwrap();
        let asked = tokio::spawn(visit.ask("https://as/authorize?client_id=c&state=a%20b&x=y"));
        for stranger in [
            "code=evil",
            "code=evil&state=guessed",
            "code=evil&state=",
            "error=access_denied&state=guessed",
            "code=evil&state=guessed&state=a%20b",
            "code=evil&state=a%20b&state=guessed",
            "code=evil&state=%ff",
        ] {
            let answer = get(port, &format!("/callback?{stranger}")).await;
            assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("follow its link"), "{answer}");
            assert!(!asked.is_finished(), "{stranger}");
        }
        assert!(get(port, "/callback?code=c&state=a+b").await.starts_with("HTTP/1.1 200"));
        assert_eq!(asked.await.unwrap().unwrap(), "code=c&state=a+b");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_forever() {
        let visit = Loopback::new(|_| Ok(())).timeout(Duration::from_secs(60)).begin(None).await.unwrap();
        let error = visit.ask("https://as").await.unwrap_err().to_string();
        assert!(error.starts_with("the login was not completed within 60s"), "{error}");
        let visit = Loopback::new(|_| Err(io::Error::other("no display"))).begin(None).await.unwrap();
        assert!(visit.ask("https://as").await.unwrap_err().to_string().contains("no display"));
    }

    /// Lets the listener do what it can do now.
    async fn settled() {
        for _ in 0..5000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_request_may_arrive_in_pieces_and_must_not_be_too_long() {
        let visit = Loopback::new(|_| Ok(())).begin(None).await.unwrap();
        let port = visit.redirect_uri().parse::<Uri>().unwrap().port_u16().unwrap();
        let asked = tokio::spawn(visit.ask("https://as/authorize?state=s"));
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let long = format!("GET /callback?code=c&state=s HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(HEAD));
        // The listener hangs up before all of it is written.
        let _ = socket.write_all(long.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        assert!(answer.is_empty() && !asked.is_finished());
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // A browser sends many cookies.
        let cookies = format!("&state=s HTTP/1.1\r\nCookie: {}\r", "c".repeat(HEAD / 2));
        for piece in ["GET /callback?code=c", &cookies, "\n\r", "\n"] {
            socket.write_all(piece.as_bytes()).await.unwrap();
            settled().await;
        }
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(asked.await.unwrap().unwrap(), "code=c&state=s");
    }

    #[tokio::test]
    async fn there_is_a_limit_of_concurrent_connections() {
        let visit = Loopback::new(|_| Ok(())).begin(None).await.unwrap();
        let port = visit.redirect_uri().parse::<Uri>().unwrap().port_u16().unwrap();
        let asked = tokio::spawn(visit.ask("https://as/authorize?state=s"));
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
            settled().await;
        }
        let more = tokio::spawn(async move { get(port, "/favicon.ico").await });
        settled().await;
        assert!(!more.is_finished(), "it waits until another connection is closed");
        idle.pop();
        assert!(more.await.unwrap().starts_with("HTTP/1.1 404"));
        asked.abort();
    }
}
