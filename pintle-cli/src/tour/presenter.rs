use std::{
    fmt,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use pintle::{
    Client, Connection, Server,
    client::Mode,
    message_log::{Direction, MessageLog, Payload, Redactor},
    types::{Message, RawObject},
};

use super::{
    Length,
    json::{Json, ShownParts},
};
use crate::{
    demo::{self, Harbour},
    output::{Paint, Tone},
};

/// The maximum width of a line.
const WIDTH: usize = 100;
/// The indentation of the body of a message.
const INDENT: usize = 6;

/// The server of the tour, its recorded messages, and the output that they are printed to.
pub(super) struct Presenter<'a> {
    pub(super) server: Server,
    pub(super) harbour: Harbour,
    out: &'a mut dyn Write,
    paint: Paint,
    length: Length,
    recording: Recording,
    chapters: usize,
    /// The parts that were already shown and are abbreviated from then on.
    seen: ShownParts,
}

/// The messages that were recorded and not shown yet.
type Recording = Arc<Mutex<Vec<(Direction, Vec<u8>)>>>;

/// Whether a connection has a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Era {
    Stateless,
    Session,
}

impl Era {
    pub(super) const BOTH: [Self; 2] = [Self::Stateless, Self::Session];
}

/// The number of lines of a message that a short tour shows.
const SHORT_BODY: usize = 12;

impl<'a> Presenter<'a> {
    pub(super) fn new(out: &'a mut dyn Write, paint: Paint, length: Length) -> Self {
        let harbour = Harbour::default();
        let server = demo::server(&harbour);
        Self {
            server,
            harbour,
            out,
            paint,
            length,
            recording: Recording::default(),
            chapters: 0,
            seen: ShownParts::new(),
        }
    }

    /// Whether everything is shown.
    pub(super) fn shows_all(&self) -> bool {
        self.length == Length::All
    }

    /// Returns the eras to show where both do the same.
    pub(super) fn eras(&self) -> &'static [Era] {
        if self.shows_all() { &Era::BOTH } else { &Era::BOTH[..1] }
    }

    /// Returns the beginning of a printed body, if a short tour is shown.
    fn shortened(&self, body: String) -> String {
        let count = body.lines().count();
        if self.shows_all() || count <= SHORT_BODY + 2 {
            return body;
        }
        let lines: Vec<_> = body.lines().take(SHORT_BODY).collect();
        format!("{}\n{:INDENT$}… ({} more lines)", lines.join("\n"), "", count - SHORT_BODY)
    }

    /// Connects a client in an era, and records its messages.
    pub(super) async fn connect(&self, client: Client, era: Era) -> pintle::Result<Connection> {
        let recording = self.recording.clone();
        let log = MessageLog::new(move |record| {
            if let Payload::Message(message) = record.payload {
                let message = message.as_bytes().to_vec();
                recording.lock().unwrap_or_else(PoisonError::into_inner).push((record.direction, message));
            }
        });
        // The tour shows answers, and there are no secrets in it.
        let client = client.message_log(log.redactor(Redactor::disabled()));
        let mode = match era {
            Era::Stateless => Mode::Modern,
            Era::Session => Mode::Legacy,
        };
        client.mode(mode).connect(self.server.in_process()?).await
    }

    /// Connects a client in an era, and discards the messages of the opening.
    pub(super) async fn connect_unrecorded(&self, client: Client, era: Era) -> pintle::Result<Connection> {
        let connection = self.connect(client, era).await?;
        // The messages after the handshake have been sent when a ping is answered.
        connection.ping().await?;
        self.skip();
        Ok(connection)
    }

    /// Discards the recorded messages.
    pub(super) fn skip(&self) {
        self.take();
    }

    fn take(&self) -> Vec<(Direction, Vec<u8>)> {
        std::mem::take(&mut *self.recording.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Prints the recorded messages.
    pub(super) fn show(&mut self) -> io::Result<()> {
        for (direction, message) in self.take() {
            self.message(direction, &message)?;
        }
        Ok(())
    }

    fn message(&mut self, direction: Direction, message: &[u8]) -> io::Result<()> {
        let (arrow, tone) = match direction {
            Direction::Out => ('→', Tone::Out),
            Direction::In => ('←', Tone::In),
        };
        let (what, id, body) = match Message::parse(message) {
            Ok(Message::Request(request)) => (request.method.into_owned(), Some(request.id), request.params),
            Ok(Message::Notification(notification)) => {
                (notification.method.into_owned(), None, notification.params)
            }
            Ok(Message::Response(answer)) => match answer.result {
                Ok(result) => ("result".to_owned(), answer.id, Some(result)),
                Err(error) => ("error".to_owned(), answer.id, RawObject::from_serialize(&error).ok()),
            },
            Err(_) => (String::from_utf8_lossy(message).into_owned(), None, None),
        };
        let id = id.map_or(String::new(), |id| format!(" #{id}"));
        let begun = 4 + what.chars().count() + id.chars().count() + 1;
        let body = body.map_or(String::new(), |body| self.body(&what, &body, begun));
        let paint = self.paint;
        let (arrow, what) = (paint.paint(tone, arrow), paint.paint(Tone::Method, what));
        writeln!(self.out, "  {arrow} {what}{}{body}", paint.paint(Tone::Faint, id))
    }

    /// Formats the body of a message, on the line of its name or below.
    fn body(&mut self, what: &str, body: &RawObject, begun: usize) -> String {
        let mut body = Json::new(body.decode().unwrap_or_default());
        if body.is_empty() {
            return " {}".to_owned();
        }
        body.fold_member("_meta", &mut self.seen);
        body.fold_large(&mut self.seen);
        if what == "result" {
            body.fold_seen(&mut self.seen, |value| !value.is_object() && !value.is_array());
        }
        if body.is_empty() {
            return String::new();
        }
        let below = body.print(INDENT, INDENT, WIDTH);
        let printed = match body.print(begun, INDENT - 2, WIDTH) {
            beside if beside.contains('\n') && !below.contains('\n') => format!("\n{:INDENT$}{below}", ""),
            beside => format!(" {beside}"),
        };
        self.shortened(printed)
    }

    pub(super) fn headline(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}\n", self.paint.paint(Tone::Title, text))
    }

    /// Prints the title of a chapter.
    pub(super) fn chapter(&mut self, title: &str) -> io::Result<()> {
        self.chapters += 1;
        let title = format!("{}. {title}", self.chapters);
        writeln!(self.out, "\n{}\n", self.paint.paint(Tone::Title, title))
    }

    /// Prints the era of the following messages.
    pub(super) fn era(&mut self, connection: &Connection, era: Era) -> io::Result<()> {
        let how = match era {
            Era::Stateless => "without a session",
            Era::Session => "with a session",
        };
        let line = format!("{how}, {}:", connection.revision().as_str());
        writeln!(self.out, "\n  {}", self.paint.paint(Tone::Faint, line))
    }

    /// Prints a wrapped paragraph.
    pub(super) fn paragraph(&mut self, text: &str) -> io::Result<()> {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if line.chars().count() + word.chars().count() >= WIDTH {
                writeln!(self.out, "{line}")?;
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        writeln!(self.out, "{line}")
    }

    /// Prints a note on the preceding messages.
    pub(super) fn note(&mut self, text: impl fmt::Display) -> io::Result<()> {
        writeln!(self.out, "    {}", self.paint.paint(Tone::Faint, text))
    }

    /// Prints two columns.
    pub(super) fn lines(&mut self, rows: &[(&str, &str)]) -> io::Result<()> {
        for (left, right) in rows {
            writeln!(self.out, "  {}  {right}", self.paint.paint(Tone::Method, format_args!("{left:<20}")))?;
        }
        Ok(())
    }

    /// Prints lines to type, each below what it does.
    pub(super) fn verbs(&mut self, rows: &[(&str, &str)]) -> io::Result<()> {
        for (typed, does) in rows {
            writeln!(self.out, "  {}", self.paint.paint(Tone::Faint, format_args!("# {does}")))?;
            writeln!(self.out, "  {}", self.paint.paint(Tone::Method, typed))?;
        }
        Ok(())
    }

    /// Prints JSON that is not a message.
    pub(super) fn json(&mut self, what: &str, text: &str) -> io::Result<()> {
        let object = Json::new(serde_json::from_str(text).unwrap_or_default());
        let printed = self.shortened(object.print(INDENT, INDENT - 2, WIDTH));
        self.note(what)?;
        writeln!(self.out, "    {printed}\n")
    }

    /// Prints the source of a function of the demo server.
    pub(super) fn source(&mut self, file: &str, begins: &str) -> io::Result<()> {
        writeln!(self.out)?;
        let from = file.lines().skip_while(|line| !line.starts_with(begins));
        let function = from.take_while(|line| *line != "}").chain(["}"]);
        for line in function {
            writeln!(self.out, "{}", self.paint.paint(Tone::Code, format_args!("    {line}")))?;
        }
        writeln!(self.out)
    }

    pub(super) fn gap(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }
}

/// Creates a client without capabilities.
pub(super) fn client() -> Client {
    Client::new("tour", "1")
}
