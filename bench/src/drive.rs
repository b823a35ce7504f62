//! The work of every client of the comparison: calls of `echo`, and their costs process.
//!
//! The clients of other SDKs compile this file too, so it needs nothing but tokio.

use std::{
    fmt::Display,
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

/// The echoed text, as in the load generator: 64 bytes of which four have to be escaped.
const TEXT: &str = "The quick brown fox jumps over the lazy dog, then says \"hello\"\n\n";
/// So many calls are made before it counts, or as many as are to be counted.
const WARM: usize = 1000;

/// The job of a client.
#[derive(Clone, Debug)]
pub struct Job {
    place: Vec<String>,
    calls: usize,
    in_flight: usize,
    session: bool,
}

impl Job {
    /// Reads `http <url> <calls> <in flight> [session]` or `stdio <calls> <in flight> [session] <server>…`.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let mut place = match words.next().as_deref() {
            Some("http") => vec![words.next().ok_or(USAGE)?],
            Some("stdio") => Vec::new(),
            _ => return Err(USAGE.to_owned()),
        };
        let mut count = || words.next().and_then(|word| word.parse().ok()).filter(|n| *n > 0).ok_or(USAGE);
        let (calls, in_flight) = (count()?, count()?);
        let mut words = words.peekable();
        let session = words.next_if(|word| word == "session").is_some();
        place.extend(words);
        if place.is_empty() { Err(USAGE.to_owned()) } else { Ok(Self { place, calls, in_flight, session }) }
    }

    /// The URL of the server, if it has one.
    pub fn url(&self) -> Option<&str> {
        self.place.first().map(String::as_str).filter(|place| place.starts_with("http://"))
    }

    /// The server's program and its arguments, if it has no URL.
    pub fn program(&self) -> (&str, &[String]) {
        self.place.split_first().map_or(("", &[]), |(program, arguments)| (program, arguments))
    }

    /// Whether to open a session. If not, the newest that both sides know.
    pub fn session(&self) -> bool {
        self.session
    }

    /// Has `call` echo a text, as often and as many at a time as configured, and returns the cost in a line of JSON.
    ///
    /// # Errors
    ///
    /// A call failed, or did not return its text.
    pub async fn run<F, Fut, E>(&self, call: F) -> Result<String, String>
    where
        F: Fn(&'static str) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<String, E>> + Send,
        E: Display,
    {
        self.calls(self.calls.min(WARM), &call).await?;
        let (before, start) = (cpu()?, Instant::now());
        self.calls(self.calls, &call).await?;
        let (wall, spent) = (start.elapsed().as_micros(), cpu()?.saturating_sub(before).as_micros());
        Ok(format!(r#"{{"calls":{},"cpu_us":{spent},"wall_us":{wall}}}"#, self.calls))
    }

    async fn calls<F, Fut, E>(&self, calls: usize, call: &F) -> Result<(), String>
    where
        F: Fn(&'static str) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<String, E>> + Send,
        E: Display,
    {
        let begun = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..self.in_flight {
            let (call, begun) = (call.clone(), begun.clone());
            tasks.spawn(async move {
                while begun.fetch_add(1, Ordering::Relaxed) < calls {
                    let text = call(TEXT).await.map_err(|error| error.to_string())?;
                    if text != TEXT {
                        return Err(format!("`echo` returned {text:?}"));
                    }
                }
                Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| error.to_string())??;
        }
        Ok(())
    }
}

const USAGE: &str =
    "say `http <url> <calls> <in flight> [session]` or `stdio <calls> <in flight> [session] <server>…`";

/// CPU time of all threads of this process that are still running, to a millisecond.
fn cpu() -> Result<Duration, String> {
    let wrong = |error: io::Error| format!("CPU time is read from /proc, on Linux: {error}");
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task").map_err(wrong)? {
        let stat = fs::read_to_string(thread.map_err(wrong)?.path().join("schedstat"));
        nanoseconds += thread_time(stat).map_err(wrong)?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Nanoseconds of one thread's `schedstat`. A thread that ended after the folder was listed has none.
fn thread_time(schedstat: io::Result<String>) -> io::Result<u64> {
    /// The error of reading the file of a thread that ended after the file was opened.
    const NO_SUCH_PROCESS: i32 = 3;
    let text = match schedstat {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => return Ok(0),
        Err(error) => return Err(error),
    };
    let spent = text.split_whitespace().next().and_then(|number| number.parse().ok());
    spent.ok_or_else(|| io::Error::other("schedstat has no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(line: &str) -> Result<Job, String> {
        Job::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn where_how_often_and_in_which_era() {
        let http = job("http http://127.0.0.1:8080/mcp 1000 64").unwrap();
        assert_eq!((http.url(), http.session()), (Some("http://127.0.0.1:8080/mcp"), false));
        assert_eq!((http.calls, http.in_flight), (1000, 64));
        let stdio = job("stdio 10 1 session ./server stdio").unwrap();
        assert_eq!((stdio.url(), stdio.session()), (None, true));
        assert_eq!(stdio.program(), ("./server", &["stdio".to_owned()][..]));
        for line in ["", "tcp 1 1 x", "http http://x 1 0", "stdio 1 1", "stdio 1 1 session"] {
            assert_eq!(job(line).unwrap_err(), USAGE, "{line}");
        }
    }

    #[test]
    fn the_text_is_that_of_the_load_generator() {
        assert_eq!(TEXT, crate::wire::TEXT);
    }

    #[test]
    fn a_thread_that_ends_while_it_is_counted_has_no_time() {
        assert_eq!(thread_time(Ok("1500 20 3\n".to_owned())).unwrap(), 1500);
        let gone = || fs::read_to_string("/proc/self/task/0/schedstat");
        assert_eq!(thread_time(gone()).unwrap(), 0);
        assert_eq!(thread_time(Err(io::Error::from_raw_os_error(3))).unwrap(), 0);
        assert!(thread_time(Err(io::ErrorKind::PermissionDenied.into())).is_err());
        assert!(thread_time(Ok("none".to_owned())).is_err());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn every_call_is_made_and_looked_at() {
        let made = Arc::new(AtomicUsize::new(0));
        let job = job("stdio 10 3 server").unwrap();
        let counted = made.clone();
        let line = job.run(move |text| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Ok::<_, String>(text.to_owned()) }
        });
        assert!(line.await.unwrap().starts_with(r#"{"calls":10,"cpu_us":"#));
        assert_eq!(made.load(Ordering::Relaxed), 20);
        let line = job.run(|_| async { Ok::<_, String>("other".to_owned()) });
        assert_eq!(line.await.unwrap_err(), r#"`echo` returned "other""#);
    }
}
