//! A call that asks the user something: one at a time.
//!
//! In a session the question comes on the call's stream, or on the one that stands open beside it, and the answer goes
//! into a POST of its own. Without one the call ends with the question, and is made again with the answer.

use std::time::{Duration, Instant};

use bench::wire::{self, Ask, Asking, Era};
use serde_json::Value;

use crate::{
    SILENCE,
    http::{Head, Wire, shown},
    tally::{Bounds, Tally},
};

/// How long a question may take to come on the call's stream before it is looked for on the other one.
const ELSEWHERE: Duration = Duration::from_millis(500);

/// The client that calls and is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    call: Wire,
    era: Era,
    asking: Asking,
    /// The ids of second rounds, apart from those of the first.
    id: u64,
    session: Option<Session>,
}

#[derive(Debug)]
struct Session {
    answer: Wire,
    headers: Vec<(&'static str, String)>,
    /// The stream beside the calls, if the server has one.
    beside: Option<Wire>,
    comes_beside: bool,
}

impl Asked {
    pub(crate) fn open(address: &str, era: Era) -> Result<Self, String> {
        let mut call = Wire::connect(address)?;
        let (mut id, mut session) = (None, None);
        if era == Era::Session {
            let opened = call.open_session()?;
            session = Some(Session {
                answer: Wire::connect(address)?,
                headers: wire::headers(Ask::Confirm, era, Some(&opened)),
                beside: stand(address, &opened)?,
                comes_beside: false,
            });
            id = Some(opened);
        }
        let asking = Asking::post(Ask::Confirm, era, address, id.as_deref());
        Ok(Self { call, era, asking, id: 5_000_000_000, session })
    }

    /// Calls until as often is called as may be.
    pub(crate) fn run(&mut self, bounds: Bounds) -> Result<Tally, String> {
        let mut tally = Tally::begin(bounds);
        while tally.may_ask() {
            let since = Instant::now();
            self.call.send(self.asking.another())?;
            match self.session.take() {
                Some(mut session) => {
                    self.in_session(&mut session)?;
                    self.session = Some(session);
                }
                None => self.in_two_rounds()?,
            }
            tally.answered(since);
        }
        Ok(tally)
    }

    fn in_two_rounds(&mut self) -> Result<(), String> {
        let head = self.call.receive()?;
        let asked = last_message(&self.call, &head)?;
        if asked["result"]["resultType"] != "input_required" {
            return Err(format!("it did not ask: {asked}"));
        }
        self.id += 1;
        let again = wire::again(self.id, &asked["result"]);
        let head = self.call.post(&again, &wire::headers(Ask::Confirm, self.era, None))?;
        is_yes(&last_message(&self.call, &head)?)
    }

    fn in_session(&mut self, session: &mut Session) -> Result<(), String> {
        let question = match session.beside.as_mut().filter(|_| session.comes_beside) {
            Some(beside) => question_on(beside)?,
            None => match self.question_here(session.beside.is_some()) {
                Ok(question) => question,
                Err(error) => {
                    let beside = session.beside.as_mut().ok_or(error)?;
                    session.comes_beside = true;
                    question_on(beside)?
                }
            },
        };
        let head = session.answer.post(&wire::accepted(&question["id"]), &session.headers)?;
        if head.status / 100 != 2 {
            return Err(format!("the answer was answered with {}", head.status));
        }
        let head = if session.comes_beside {
            self.call.receive()?
        } else {
            let head = self.call.read_again().ok_or("the call's answer has no head")?;
            while !head.is_whole(self.call.came()) {
                self.call.more()?;
            }
            head
        };
        is_yes(&last_message(&self.call, &head)?)
    }

    /// The question on the call's own stream.
    fn question_here(&mut self, elsewhere: bool) -> Result<Value, String> {
        self.call.set_timeout(if elsewhere { ELSEWHERE } else { SILENCE })?;
        let found = self.call.receive_head().and_then(|head| {
            loop {
                if let Some(question) = question_in(&self.call.body(&head)) {
                    break Ok(question);
                }
                if head.is_whole(self.call.came()) {
                    break Err(format!("it did not ask: {}", shown(&self.call.body(&head))));
                }
                if let Err(error) = self.call.more() {
                    break Err(error);
                }
            }
        });
        self.call.set_timeout(SILENCE)?;
        found
    }
}

/// Opens the stream beside the calls.
fn stand(address: &str, session: &str) -> Result<Option<Wire>, String> {
    let mut wire = Wire::connect(address)?;
    let revision = Era::Session.revision();
    wire.send(
        format!(
            "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: {revision}\r\nMcp-Session-Id: {session}\r\n\r\n"
        )
        .as_bytes(),
    )?;
    wire.set_timeout(ELSEWHERE)?;
    // Some say nothing, not even a head, before there is something to say.
    let there = wire.receive_head().map_or(true, |head| head.status == 200);
    wire.set_timeout(SILENCE)?;
    Ok(there.then_some(wire))
}

/// The next question on a stream that never ends.
fn question_on(wire: &mut Wire) -> Result<Value, String> {
    loop {
        if let Some(question) = question_in(wire.came()) {
            wire.forget();
            return Ok(question);
        }
        wire.more()?;
    }
}

fn question_in(events: &[u8]) -> Option<Value> {
    let mut messages = wire::payloads(events).filter_map(|text| serde_json::from_slice::<Value>(text).ok());
    messages.find(|message| message["method"] == "elicitation/create")
}

fn last_message(wire: &Wire, head: &Head) -> Result<Value, String> {
    let body = wire.body(head);
    let messages = wire::payloads(&body).filter_map(|text| serde_json::from_slice(text).ok());
    messages.last().ok_or_else(|| format!("{}: {}", head.status, shown(&body)))
}

fn is_yes(answer: &Value) -> Result<(), String> {
    if answer["result"]["content"][0]["text"] == "yes" { Ok(()) } else { Err(format!("not yes: {answer}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_found_among_events() {
        let events =
            b"id: 1\ndata:\n\nevent: message\ndata: {\"id\":\"q\",\"method\":\"elicitation/create\"}\n\n";
        assert_eq!(question_in(events).unwrap()["id"], "q");
        assert_eq!(question_in(b"data: {\"method\":\"notifications/message\"}\n\n"), None);
    }

    #[test]
    fn only_yes_is_yes() {
        let result = |text: &str| serde_json::json!({"result": {"content": [{"text": text}]}});
        assert_eq!(is_yes(&result("yes")), Ok(()));
        assert!(is_yes(&result("no")).is_err());
    }
}
