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

/// A browser has a few connections open at a time.
const CONNECTIONS: usize = 16;
/// The head of a request that leads back: a code, a state, and a browser's headers.
const HEAD: usize = 32 << 10;
/// For a browser to say what it wants on a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// After a connection that came to nothing.
const PAUSE: Duration = Duration::from_millis(50);
const PATH: &str = "/callback";

type Open = dyn Fn(&str) -> io::Result<()> + Send + Sync;

/// Opens a browser, and listens on this machine for it to come back.
///
/// Whatever else on the machine, or any page in the browser, sends there is turned away: only what has the `state` of this
/// login ends it.
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
    patience: Duration,
}

impl Loopback {
    /// Sends the user to an address with `open`.
    pub fn new(open: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), port: 0, patience: Duration::from_secs(300) }
    }

    /// Sends the user to an address with the system's own browser.
    pub fn browser() -> Self {
        Self::new(open_browser)
    }

    /// Listens on this port. Otherwise on the one of the last login if it is free, or on any: authorization servers
    /// have to let programs on the user's machine choose.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Waits this long for the user. 5 minutes.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
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
            // Somebody else may have it by now.
            listener = TcpListener::bind(("127.0.0.1", port)).await.ok();
        }
        let listener = match listener {
            Some(listener) => listener,
            None => TcpListener::bind(("127.0.0.1", self.port)).await.map_err(|error| {
                let said = format!("the login has nowhere to lead back to: port {}: {error}", self.port);
                Error::Io(io::Error::new(error.kind(), said))
            })?,
        };
        let port = listener.local_addr()?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
        Ok(Listening { listener, redirect_uri, open: self.open.clone(), patience: self.patience })
    }
}

/// A login of a [`Loopback`]: it listens.
pub struct Listening {
    listener: TcpListener,
    redirect_uri: String,
    open: Arc<Open>,
    patience: Duration,
}

impl Visit for Listening {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    async fn ask(self, url: &str) -> Result<String> {
        (self.open)(url).map_err(|error| {
            Error::Io(io::Error::new(error.kind(), format!("no browser could be opened: {error}")))
        })?;
        let state = url.split_once('?').and_then(|(_, query)| state_of(query)).map(Arc::from);
        let waited = timeout(self.patience, came_back(self.listener, state)).await;
        waited.unwrap_or_else(|_| {
            Err(Error::Refused(format!(
                "nobody came back from the login within {:?}: try again, or raise `Loopback::patience`",
                self.patience
            )))
        })
    }
}

/// What the browser came back with. It may ask for other things before, and open connections that it never uses; others may
/// come with another `state`.
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
                // Who called has hung up, or there are too many open files just now: others may fare better.
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
                    let visited = timeout(PATIENCE, visited(socket, state.as_deref())).await;
                    Event::Visited(visited.ok().flatten())
                });
            }
            Some(Ok(Event::Visited(Some(query)))) => return Ok(query),
            _ => {}
        }
    }
}

/// One request: the query, if it is the one that is waited for. `state` is what that has to have.
async fn visited(mut socket: TcpStream, state: Option<&str>) -> Option<String> {
    let mut head: Vec<u8> = Vec::new();
    // Each byte is looked at once, however they come.
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
            let said = "This is not the login that the program waits for. Go back to the program and follow its link.";
            ("400 Bad Request", said)
        }
        (None, None) => ("404 Not Found", "There is nothing here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // What came is good even if the browser does not wait for thanks.
    let _ = socket.write_all(answer.as_bytes()).await;
    let _ = socket.shutdown().await;
    ours.map(str::to_owned)
}

/// The `state` in a query, if there is one and no other.
fn state_of(query: &str) -> Option<String> {
    let mut states = form::pairs(query)?.into_iter().filter(|(name, _)| name == "state");
    let (_, state) = states.next()?;
    states.next().is_none().then_some(state)
}

/// The query of a request that leads back.
fn query(line: &str) -> Option<&str> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    let answers = query.split('&').any(|pair| pair.starts_with("code=") || pair.starts_with("error="));
    answers.then_some(query)
}

/// The address goes to a program as one argument; no shell reads it.
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
    let quiet = process::Stdio::null;
    let mut child = command.arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn()?;
    // It hands the address on and ends; somebody has to take note of that.
    std::thread::spawn(move || child.wait());
    Ok(())
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback")
            .field("port", &self.port)
            .field("patience", &self.patience)
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
        let visit = Loopback::new(|_| Ok(())).patience(Duration::from_secs(60)).begin(None).await.unwrap();
        let error = visit.ask("https://as").await.unwrap_err().to_string();
        assert!(error.starts_with("nobody came back from the login within 60s"), "{error}");
        let visit = Loopback::new(|_| Err(io::Error::other("no display"))).begin(None).await.unwrap();
        assert!(visit.ask("https://as").await.unwrap_err().to_string().contains("no display"));
    }
}
