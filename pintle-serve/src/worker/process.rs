use std::{collections::BTreeMap, future::poll_fn, io, sync::Arc, task::Poll};

use pintle::{
    transport::{Child, Incoming, Transport as _},
    types::JsonObject,
};
use pintle_openapi::Redaction;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    message::{WorkerMessage, call_at_start},
    open_call::OpenCall,
    pool::Order,
    settings::{IdleOutput, MAX_IDLE, WorkerSettings},
};
use crate::environment::GRACE;

/// The most characters of a line that is quoted.
const QUOTED: usize = 200;

/// A process of a worker, and its calls. It is ended when this is dropped.
pub(super) struct Process {
    settings: Arc<WorkerSettings>,
    child: Child,
    idle: Arc<IdleOutput>,
    /// The secrets of its environment.
    redaction: Redaction,
    calls: BTreeMap<u64, OpenCall>,
    /// Whether all that was sent is written.
    is_written: bool,
    /// Whether its input is closed.
    is_deaf: bool,
    /// The time at which it is ended if it does not read its input until then.
    unread_until: Option<Instant>,
    /// Whether it has written a line that was no message.
    is_noisy: bool,
    /// Whether it has ended a call.
    pub(super) has_answered: bool,
    /// When it has ended a call last.
    last_answer: Option<Instant>,
    /// Whether a call is overdue, and none has ended since.
    pub(super) is_stuck: bool,
}

/// An event of a process.
pub(super) enum Activity {
    Line(Incoming),
    Written(io::Result<()>),
    /// The end of its output.
    End,
}

impl Process {
    pub(super) fn new(
        settings: Arc<WorkerSettings>,
        child: Child,
        idle: Arc<IdleOutput>,
        redaction: Redaction,
    ) -> Self {
        Self {
            settings,
            child,
            idle,
            redaction,
            calls: BTreeMap::new(),
            is_written: true,
            is_deaf: false,
            unread_until: None,
            is_noisy: false,
            has_answered: false,
            last_answer: None,
            is_stuck: false,
        }
    }

    /// Returns whether another call may be sent: what was sent before is written, and calls end.
    pub(super) fn takes_orders(&self) -> bool {
        self.is_written && !self.is_deaf && !self.is_stuck && self.calls.len() < self.settings.max_running
    }

    pub(super) fn begin(&mut self, mut order: Order) {
        if order.events.is_closed() {
            return;
        }
        self.send(std::mem::take(&mut order.line));
        self.calls.insert(order.id, OpenCall::new(order, Instant::now()));
        self.idle.begin(false);
    }

    fn send(&mut self, line: String) {
        if !self.is_deaf {
            self.child.send(line.into());
            self.is_written = false;
        }
    }

    /// Waits for what happens next. What is sent is written meanwhile.
    pub(super) async fn activity(&mut self) -> Activity {
        poll_fn(|cx| {
            if !self.is_written
                && !self.is_deaf
                && let Poll::Ready(written) = self.child.poll_flush(cx)
            {
                return Poll::Ready(Activity::Written(written));
            }
            self.child.poll_recv(cx).map(|received| match received {
                Ok(Some(line)) => Activity::Line(line),
                Ok(None) | Err(_) => Activity::End,
            })
        })
        .await
    }

    /// Takes what has happened. Returns why the process is over, if it is.
    pub(super) fn take(&mut self, activity: Activity) -> Option<String> {
        match activity {
            Activity::Line(Incoming::Message(line)) => {
                self.receive(&line);
                return self.flood();
            }
            Activity::Line(Incoming::Failed(_)) => {}
            Activity::Line(Incoming::Oversized(_)) => {
                let limit = self.settings.max_message;
                return Some(format!(
                    "wrote a line of more than {limit} bytes, and was ended: write less, or set `max_message`"
                ));
            }
            Activity::Written(Ok(())) => self.is_written = true,
            // Why it has closed its input is known soon, if it exits.
            Activity::Written(Err(_)) => self.is_deaf = true,
            Activity::End => return Some(self.end()),
        }
        None
    }

    fn end(&self) -> String {
        let words = self.child.last_words();
        let words = words.map(|words| format!("; its last output: {}", self.redaction.apply(&words)));
        let words = words.unwrap_or_default();
        match self.child.exit() {
            Some(exit) => format!("{exit}{words}"),
            None => format!("closed its output, and was ended{words}"),
        }
    }

    /// Returns why the process is over, if it has written too much without a call.
    pub(super) fn flood(&self) -> Option<String> {
        self.idle.add(0).then(|| {
            let reason = format!("wrote more than {MAX_IDLE} bytes without a call, and was ended");
            tracing::warn!(worker = self.settings.name, "a worker {reason}");
            (self.settings.log)(&self.settings.name, &format!("{reason}: have it write during calls only"));
            reason
        })
    }

    /// Takes a line. What is no UTF-8 in it is replaced.
    fn receive(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let members: Result<JsonObject, _> = serde_json::from_str(&text);
        let id = match &members {
            Ok(members) => members.get("call").and_then(Value::as_u64),
            Err(_) => call_at_start(&text),
        };
        let call = id.and_then(|id| Some((id, self.calls.get_mut(&id)?)));
        let Some((id, call)) = call else { return self.note_noise(&text, id) };
        let message = match members {
            Ok(members) => WorkerMessage::read(members, line.len()),
            Err(error) => Err(format!("a line that is not strict JSON: {error}: change it")),
        };
        let ends_run = message.as_ref().is_ok_and(WorkerMessage::ends_run);
        let passed = message.and_then(|message| call.pass(message));
        if ends_run {
            self.remove(id);
            self.has_answered = true;
        } else if let Err(wrong) = passed {
            self.fail(id, &format!("wrote {wrong}"));
            // Its worker may take it for the end.
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u64) {
        self.calls.remove(&id);
        if self.calls.is_empty() {
            self.idle.begin(true);
        }
        (self.last_answer, self.is_stuck) = (Some(Instant::now()), false);
    }

    /// Keeps a line that is no message for the errors of open calls. The first one is logged.
    fn note_noise(&mut self, line: &str, id: Option<u64>) {
        let quoted: String = match id {
            // What it says is about somebody else's call.
            Some(id) => format!("{{\"call\":{id},…"),
            None if line.trim_start().starts_with('{') => "{…".to_owned(),
            None => line.chars().take(QUOTED).collect(),
        };
        if !std::mem::replace(&mut self.is_noisy, true) {
            let name = &self.settings.name;
            tracing::warn!(worker = name, line = quoted, "a line of a worker is about no open call");
            let note = "is no line about an open call: write what is for people to standard error";
            (self.settings.log)(name, &format!("`{quoted}` {note}"));
        }
        self.calls.values_mut().for_each(|call| call.note_noise(&quoted));
    }

    /// Fails a call, and tells the process to cancel it.
    fn fail(&mut self, id: u64, what: &str) {
        // It is told once.
        if let Some(call) = self.calls.get_mut(&id).filter(|call| call.is_awaited()) {
            call.fail(&self.settings.name, what);
            self.send(format!("{{\"cancel\":{id}}}"));
        }
    }

    /// Has the calls cancelled that nobody waits for any more.
    pub(super) fn cancel_left(&mut self) {
        let left = self.calls.iter_mut().filter_map(|(id, call)| call.has_been_left().then_some(*id));
        for id in left.collect::<Vec<_>>() {
            self.send(format!("{{\"cancel\":{id}}}"));
        }
    }

    /// Fails all calls.
    pub(super) fn fail_all(&mut self, what: &str) {
        let name = &self.settings.name;
        self.calls.values_mut().for_each(|call| call.fail(name, what));
    }

    /// Returns when [`expire`](Self::expire) has something to do.
    pub(super) fn wake(&mut self) -> Option<Instant> {
        let is_unread = self.is_deaf || (self.calls.is_empty() && !self.is_written);
        self.unread_until = is_unread.then(|| self.unread_until.unwrap_or_else(|| Instant::now() + GRACE));
        let awaited = self.calls.values().filter(|call| call.is_awaited());
        let next = awaited.map(|call| call.deadline).min();
        // Once it is stuck, it is over with the last call that is awaited.
        let stuck = self.stuck_at().filter(|_| !self.is_stuck || next.is_none());
        next.or_else(|| self.last_end()).into_iter().chain(stuck).chain(self.unread_until).min()
    }

    /// Returns when the last of the calls should have been cancelled.
    fn last_end(&self) -> Option<Instant> {
        self.calls.values().map(|call| call.deadline + GRACE).max()
    }

    /// Returns since when, or from when on, it is stuck: the first of the calls that was to end after the last answer should have been
    /// cancelled.
    fn stuck_at(&self) -> Option<Instant> {
        let deadlines = self.calls.values().map(|call| call.deadline);
        let since = deadlines.filter(|deadline| self.last_answer.is_none_or(|answer| answer < *deadline));
        since.min().map(|deadline| deadline + GRACE)
    }

    /// Fails the calls that are over their time. Returns why the process is over, if it is: it does not read its input, or all of its
    /// calls have been over for a while.
    pub(super) fn expire(&mut self, now: Instant) -> Option<String> {
        let late = self.calls.iter().filter(|(_, call)| call.is_awaited() && call.deadline <= now);
        for (id, timeout) in late.map(|(id, call)| (*id, call.timeout)).collect::<Vec<_>>() {
            self.fail(id, &format!("took longer than {timeout:?}, and the call was cancelled"));
        }
        if self.unread_until.is_some_and(|until| until <= now) {
            return Some("does not read its input, and was ended".to_owned());
        }
        self.is_stuck = self.stuck_at().is_some_and(|stuck| stuck <= now);
        let is_over = self.calls.values().all(|call| !call.is_awaited())
            && (self.is_stuck || self.last_end().is_some_and(|end| end <= now));
        is_over.then(|| "does not end its calls, and was ended".to_owned())
    }
}
