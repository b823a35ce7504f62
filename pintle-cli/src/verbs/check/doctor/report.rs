use serde_json::{Value, json};

use crate::{
    failure::Failure,
    output::{Output, Text, Tone},
};

/// The steps so far. Each is printed when it is done.
pub(super) struct Report<'a> {
    steps: Vec<DoctorStep>,
    output: &'a Output,
}

struct DoctorStep {
    name: &'static str,
    status: Status,
    message: String,
    next: String,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Status {
    Ok,
    Warning,
    Failed,
    Skipped,
}

impl<'a> Report<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { steps: Vec::new(), output }
    }

    pub(super) fn ok(&mut self, name: &'static str, message: impl Into<String>) {
        self.add(name, Status::Ok, message.into(), String::new());
    }

    /// A step that cannot be made, or need not.
    pub(super) fn skipped(&mut self, name: &'static str, message: impl Into<String>) {
        self.add(name, Status::Skipped, message.into(), String::new());
    }

    /// A step that works, with something that may not work elsewhere.
    pub(super) fn warning(
        &mut self,
        name: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) {
        self.add(name, Status::Warning, message.into(), next.into());
    }

    pub(super) fn failed(&mut self, name: &'static str, message: impl Into<String>, next: impl Into<String>) {
        self.add(name, Status::Failed, message.into(), next.into());
    }

    pub(super) fn failure(&mut self, name: &'static str, failure: &Failure) {
        self.failed(name, &failure.message, &failure.next);
    }

    fn add(&mut self, name: &'static str, status: Status, message: String, next: String) {
        let step = DoctorStep { name, status, message, next };
        if !self.output.is_structured() {
            // A closed output ends the verb at its end.
            let _ = self.output.text(|text| step.to_text(text));
        }
        self.steps.push(step);
    }

    /// Returns the number of failed steps.
    pub(super) fn failures(&self) -> usize {
        self.steps.iter().filter(|step| step.status == Status::Failed).count()
    }

    /// Returns what to do about the first failure.
    pub(super) fn next(&self) -> Option<&str> {
        self.steps.iter().find(|step| step.status == Status::Failed).map(|step| step.next.as_str())
    }

    pub(super) fn to_json(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            let DoctorStep { name, status, message, next } = step;
            let mut row = json!({ "step": name, "status": status.name(), "message": message });
            if !next.is_empty() {
                row["next"] = next.as_str().into();
            }
            row
        });
        json!({ "ok": self.failures() == 0, "steps": steps.collect::<Vec<_>>() })
    }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl DoctorStep {
    fn to_text(&self, text: &mut Text) {
        let (tone, sign) = match self.status {
            Status::Ok => (Tone::Out, "✓"),
            Status::Warning => (Tone::Code, "!"),
            Status::Failed => (Tone::Error, "✗"),
            Status::Skipped => (Tone::Faint, "·"),
        };
        text.tone(tone, sign)
            .add(" ")
            .tone(Tone::Method, format_args!("{:<12}", self.name))
            .line(&self.message);
        if !self.next.is_empty() {
            text.add("              ").tone(Tone::Faint, "try: ").line(&self.next);
        }
    }
}
