use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use pintle::{
    proto::http::Refusal,
    server::http::{BodyLimits, ReadBodyError, RequestBody, read_body},
    types::{Message, method},
};
use tokio::sync::mpsc;

use super::{Delivery, Player, Script};
use crate::{
    failure::Failure,
    listen::{ENDPOINT, ListenArgs, ServedBody, refused},
    output::Output,
    storage::unique_name,
};

/// The limit of sessions. The oldest ends when there is another.
const MAX_SESSIONS: usize = 64;

/// The header of a session.
const SESSION: &str = "mcp-session-id";

/// The clients of a replayed server.
struct Replay {
    script: Arc<Script>,
    strict: bool,
    clients: Mutex<Clients>,
}

struct Clients {
    /// All clients without a session.
    stateless: Client,
    /// In the order of their creation.
    sessions: Vec<(String, Client)>,
    tags: u64,
}

struct Client {
    player: Player,
    /// The open responses, by the tag of their request.
    streams: HashMap<u64, mpsc::Sender<Bytes>>,
    /// The open GET stream.
    listener: Option<mpsc::Sender<Bytes>>,
    /// Messages of the connection that wait for a GET stream.
    waiting: Vec<Bytes>,
}

/// Serves until the command is interrupted.
pub(super) async fn run(
    script: Arc<Script>,
    strict: bool,
    address: &str,
    allowed: &ListenArgs,
    output: &Output,
) -> Result<(), Failure> {
    let listening = allowed.listen(address, "replay").await?;
    listening.announce(ENDPOINT, output)?;
    let stateless = Client::new(&script, strict);
    let clients = Mutex::new(Clients { stateless, sessions: Vec::new(), tags: 0 });
    let replay = Arc::new(Replay { script, strict, clients });
    listening.serve(move |request| replay.clone().answer(request), output).await
}

impl Replay {
    async fn answer(self: Arc<Self>, request: Request<RequestBody>) -> Response<ServedBody> {
        let (head, body) = request.into_parts();
        let session = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match (head.method, session) {
            (Method::POST, session) => {
                let body = match read_body(body, &BodyLimits::default()).await {
                    Ok(body) => body,
                    Err(ReadBodyError::Refused(refusal)) => return refused(&refusal),
                    Err(ReadBodyError::Broken) => return refused(&Refusal::too_slow()),
                };
                self.post(session, &String::from_utf8_lossy(&body))
            }
            (Method::GET, Some(session)) => self.listen(&session),
            (Method::DELETE, Some(session)) => {
                self.lock().sessions.retain(|(id, _)| *id != session);
                Response::new(ServedBody::full(""))
            }
            (method, _) => refused(&Refusal::method_not_allowed(&method, "POST")),
        }
    }

    fn post(&self, session: Option<String>, message: &str) -> Response<ServedBody> {
        let parsed = Message::parse_str(message);
        let is_opening =
            matches!(&parsed, Ok(Message::Request(request)) if request.method == method::INITIALIZE);
        let has_response = !matches!(parsed, Ok(Message::Notification(_) | Message::Response(_)));
        let mut clients = self.lock();
        clients.tags += 1;
        let tag = clients.tags;
        let mut opened = None;
        let client = match session {
            _ if is_opening => {
                let id = format!("{}{}", unique_name(), unique_name());
                if clients.sessions.len() >= MAX_SESSIONS {
                    clients.sessions.remove(0);
                }
                clients.sessions.push((id.clone(), Client::new(&self.script, self.strict)));
                opened = Some(id);
                clients.sessions.last_mut().map(|(_, client)| client)
            }
            Some(session) => clients.session(&session),
            None => Some(&mut clients.stateless),
        };
        let Some(client) = client else { return refused(&Refusal::unknown_session()) };
        let deliveries = client.player.receive(message, tag);
        let (mine, others): (Vec<_>, Vec<_>) =
            deliveries.into_iter().partition(|delivery| delivery.tag == Some(tag));
        let mut response = match has_response {
            true => self.respond(client, tag, mine),
            false => with_status(StatusCode::ACCEPTED),
        };
        client.send(others);
        if let Some(id) = opened
            && let Ok(id) = HeaderValue::try_from(id)
        {
            response.headers_mut().insert(SESSION, id);
        }
        response
    }

    /// Responds with JSON if there is nothing but the answer, otherwise with an event stream.
    fn respond(&self, client: &mut Client, tag: u64, mut mine: Vec<Delivery>) -> Response<ServedBody> {
        match mine.as_slice() {
            [only] if only.is_last => {
                let status =
                    only.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or_default();
                let mut response = with_status(status);
                *response.body_mut() = ServedBody::full(mine.remove(0).message);
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            _ => {
                // There is room for every message that the recording has.
                let (sender, events) = mpsc::channel(self.capacity());
                client.streams.insert(tag, sender);
                client.send(mine);
                event_stream(events)
            }
        }
    }

    fn listen(&self, session: &str) -> Response<ServedBody> {
        let mut clients = self.lock();
        let Some(client) = clients.session(session) else { return refused(&Refusal::unknown_session()) };
        let (sender, events) = mpsc::channel(self.capacity());
        for message in client.waiting.drain(..) {
            // There is room for all of them.
            let _ = sender.try_send(message);
        }
        client.listener = Some(sender);
        event_stream(events)
    }

    /// Returns the number of messages that a client can be sent.
    fn capacity(&self) -> usize {
        let steps: usize = self.script.requests.iter().map(|request| request.steps.len()).sum();
        steps + self.script.standalone.len() + 1
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    fn session(&mut self, id: &str) -> Option<&mut Client> {
        self.sessions.iter_mut().find(|(own, _)| own == id).map(|(_, client)| client)
    }
}

impl Client {
    fn new(script: &Arc<Script>, strict: bool) -> Self {
        let player = Player::new(script.clone(), strict);
        Self { player, streams: HashMap::new(), listener: None, waiting: Vec::new() }
    }

    /// Sends messages to the streams that they belong to.
    fn send(&mut self, deliveries: Vec<Delivery>) {
        for Delivery { tag, message, is_last, .. } in deliveries {
            let event = event(&message);
            let Some(tag) = tag else {
                let listener = self.listener.as_ref().filter(|listener| !listener.is_closed());
                match listener {
                    Some(listener) => drop(listener.try_send(event)),
                    // Each is sent once: there are no more than the recording has.
                    None => self.waiting.push(event),
                }
                continue;
            };
            let is_open = self.streams.get(&tag).is_some_and(|stream| stream.try_send(event).is_ok());
            if is_last || !is_open {
                self.streams.remove(&tag);
                self.player.abandon(tag);
            }
        }
        // Those whose client has disconnected.
        let gone: Vec<_> =
            self.streams.iter().filter(|(_, stream)| stream.is_closed()).map(|(tag, _)| *tag).collect();
        for tag in gone {
            self.streams.remove(&tag);
            self.player.abandon(tag);
        }
    }
}

fn event(message: &[u8]) -> Bytes {
    [b"data: ", message, b"\n\n"].concat().into()
}

fn event_stream(events: mpsc::Receiver<Bytes>) -> Response<ServedBody> {
    let mut response = Response::new(ServedBody::Events(events));
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn with_status(status: StatusCode) -> Response<ServedBody> {
    let mut response = Response::new(ServedBody::full(""));
    *response.status_mut() = status;
    response
}
