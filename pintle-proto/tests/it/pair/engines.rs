use std::collections::VecDeque;

use pintle_proto::client::{Extras, OpenError};
use pintle_types::Message;
use serde_json::{Value, json};

use super::{
    client::{Client, Failure},
    server::Server,
};

/// Clients and one server, with the lines that are on their way between them.
pub(crate) struct Pair {
    pub(crate) now: u64,
    /// Almost always one.
    pub(crate) clients: Vec<Client>,
    pub(crate) server: Server,
    pub(crate) manner: Manner,
    /// Which client a line of the server's is for.
    pub(crate) route: fn(&Value) -> usize,
    /// On whose behalf the transport says that lines come.
    pub(crate) principal: Option<&'static str>,
    /// Every line that crossed, with `>` for the client's and `<` for the server's.
    pub(crate) wire: Vec<String>,
    to_client: VecDeque<Vec<u8>>,
    delayed: Vec<(u64, Vec<u8>)>,
}

/// How the server's process behaves, whatever its engine decides.
#[derive(Default)]
pub(crate) struct Manner {
    /// Methods that it never sees.
    pub(crate) deaf: &'static [&'static str],
    /// Dies when it is asked this.
    pub(crate) dies_of: &'static [&'static str],
    pub(crate) deaths: usize,
    /// How long the answer to `server/discover` takes.
    pub(crate) slow_probe_ms: u64,
    /// Prints to its standard output.
    pub(crate) noisy: bool,
}

/// Lines that a server prints which does not know better. None of them is a message.
const NOISE: [&str; 3] = ["listening on port 80", "", "{\"level\":\"info\",\"msg\":\"half a "];

impl Pair {
    pub(crate) fn new(client: Client, server: Server) -> Self {
        Self {
            now: 1_000_000,
            clients: vec![client],
            server,
            manner: Manner::default(),
            route: |_| 0,
            principal: None,
            wire: Vec::new(),
            to_client: VecDeque::new(),
            delayed: Vec::new(),
        }
    }

    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.clients[0]
    }

    /// Opens every client and says in which revision the first one is open.
    pub(crate) fn open(&mut self) -> Result<String, OpenError> {
        for client in &mut self.clients {
            client.open(self.now);
        }
        self.drive();
        self.opened().expect("it is still being opened")
    }

    pub(crate) fn opened(&self) -> Option<Result<String, OpenError>> {
        Some(self.clients[0].opened.clone()?.map(|opened| opened.revision.to_string()))
    }

    /// A request from start to end, however many rounds it takes.
    pub(crate) fn call(&mut self, method: &'static str, params: Value) -> Result<Value, Failure> {
        self.call_with(method, params, &Extras::default())
    }

    pub(crate) fn call_with(
        &mut self,
        method: &'static str,
        params: Value,
        extras: &Extras<'_>,
    ) -> Result<Value, Failure> {
        let call = self.client().start(method, params, extras).map_err(Failure::Unsent)?;
        self.drive();
        self.client().ended(call).unwrap_or_else(|| panic!("no answer:\n{}", self.wire.join("\n")))
    }

    /// Calls a tool; its text.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Result<String, Failure> {
        let result = self.call("tools/call", json!({"name": name, "arguments": arguments}))?;
        assert_ne!(result["isError"], true, "{result}");
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    /// Runs until nobody has anything to say.
    pub(crate) fn drive(&mut self) {
        for _ in 0..100_000 {
            if !self.turn() {
                return;
            }
        }
        panic!("it goes on for ever:\n{}", self.wire[self.wire.len() - 20..].join("\n"));
    }

    /// Moves the clock, and does on the way what is due.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.now + ms;
        loop {
            let timers = self.clients.iter().filter_map(Client::next_timer);
            let due = timers.chain(self.delayed.iter().map(|(due, _)| *due)).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            let now = self.now;
            for client in &mut self.clients {
                client.fire(now);
            }
            let (ready, later) =
                std::mem::take(&mut self.delayed).into_iter().partition(|(due, _)| *due <= now);
            self.delayed = later;
            let ready: Vec<(u64, Vec<u8>)> = ready;
            self.to_client.extend(ready.into_iter().map(|(_, line)| line));
            self.drive();
        }
        self.now = end;
    }

    fn turn(&mut self) -> bool {
        let now = self.now;
        let mut busy = false;
        for at in 0..self.clients.len() {
            while let Some(line) = self.clients[at].out.pop_front() {
                busy = true;
                self.cross('>', &line);
                self.carry_to_server(&line);
            }
        }
        busy |= self.server.poll(now);
        while let Some(line) = self.server.out.pop_front() {
            busy = true;
            if self.manner.slow_probe_ms > 0 && String::from_utf8_lossy(&line).contains("supportedVersions") {
                self.delayed.push((now + self.manner.slow_probe_ms, line));
            } else {
                self.to_client.push_back(line);
            }
        }
        while let Some(line) = self.to_client.pop_front() {
            busy = true;
            self.carry_to_client(&line);
        }
        busy
    }

    fn carry_to_server(&mut self, line: &[u8]) {
        let request = match Message::parse(line) {
            Ok(Message::Request(request)) => request.method,
            _ => "".into(),
        };
        if self.manner.dies_of.contains(&&*request) {
            self.manner.deaths += 1;
            self.server.restart();
            self.to_client.clear();
            let now = self.now;
            self.client().closed(now);
        } else if !self.manner.deaf.contains(&&*request) {
            self.server.receive(line, self.now, self.principal);
        }
    }

    fn carry_to_client(&mut self, line: &[u8]) {
        self.cross('<', line);
        let value: Value = serde_json::from_slice(line).unwrap();
        let at = (self.route)(&value);
        let client = &mut self.clients[at];
        for noise in NOISE.into_iter().filter(|_| self.manner.noisy) {
            client.receive(noise.as_bytes(), self.now);
        }
        client.receive(line, self.now);
    }

    /// Every line is one line of JSON, and speaks the words of its era only.
    fn cross(&mut self, direction: char, line: &[u8]) {
        let text = std::str::from_utf8(line).unwrap();
        assert!(!text.contains('\n'), "{text}");
        serde_json::from_str::<Value>(text).unwrap();
        self.wire.push(format!("{direction} {text}"));
    }
}
