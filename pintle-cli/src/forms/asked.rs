use pintle::{
    client::SuspendedCall,
    types::{
        method,
        schema::{ElicitParams, Implementation},
    },
};
use serde_json::{Map, Value, json};

use super::form::Form;

/// Input requests of a server that were not answered, to be shown to those who can answer them.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    server: String,
    requests: Vec<AskedRequest>,
}

#[derive(Clone, Debug)]
struct AskedRequest {
    key: String,
    method: String,
    /// The params, as the protocol has them.
    params: Value,
}

impl Asked {
    /// The questions of a call that can be resumed.
    pub(super) fn of_call(server: String, call: &SuspendedCall) -> Self {
        let request = |question: &pintle::client::SuspendedQuestion| AskedRequest {
            key: question.key.clone(),
            method: question.method.clone(),
            params: serde_json::from_str(question.params.as_str()).unwrap_or_default(),
        };
        Self { server, requests: call.requests.iter().map(request).collect() }
    }

    /// One elicitation of a session.
    pub(super) fn elicitation(server: String, key: Option<&str>, params: Value) -> Self {
        let key = key.unwrap_or("question").to_owned();
        Self {
            server,
            requests: vec![AskedRequest { key, method: method::ELICITATION_CREATE.to_owned(), params }],
        }
    }

    /// Returns the questions as the protocol has them, with the token of the call if it can be resumed.
    pub(super) fn to_json(&self, token: Option<&str>) -> Value {
        let requests: Map<_, _> = self
            .requests
            .iter()
            .map(|request| (request.key.clone(), json!({"method": request.method, "params": request.params})))
            .collect();
        let mut result = json!({"resultType": "input_required", "inputRequests": requests});
        if let Some(token) = token {
            result["resume"] = token.into();
        }
        result
    }

    /// Returns the first question as one line, and further lines: its fields, and the other questions.
    pub(super) fn lines(&self) -> (String, Vec<String>) {
        let (mut first, mut lines) = (format!("{} asks for input", self.server), Vec::new());
        for (number, request) in self.requests.iter().enumerate() {
            let line = match request.elicit() {
                Some(ElicitParams::Form(params)) => {
                    let form = Form::new(&params);
                    (form.message.clone(), form.lines())
                }
                Some(ElicitParams::Url(params)) => (params.message, vec![format!("page: {}", params.url)]),
                _ => (format!("`{}`", request.method), Vec::new()),
            };
            match number {
                0 => first = format!("{} asks: {}", self.server, line.0),
                _ => lines.push(format!("and: {}", line.0)),
            }
            lines.extend(line.1);
        }
        (first, lines)
    }

    /// Returns words that answer the questions: `nights=1`, and `--accept` for a page.
    pub(super) fn example_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for request in &self.requests {
            match request.elicit() {
                Some(ElicitParams::Form(params)) => words.extend(Form::new(&params).examples()),
                Some(ElicitParams::Url(_)) => words.push("--accept".to_owned()),
                _ if request.method == method::SAMPLING_CREATE_MESSAGE => {
                    words.extend(["--sample-with", "COMMAND"].map(str::to_owned));
                }
                _ => {}
            }
        }
        words
    }
}

impl AskedRequest {
    fn elicit(&self) -> Option<ElicitParams> {
        let is_elicitation = self.method == method::ELICITATION_CREATE;
        is_elicitation.then(|| serde_json::from_value(self.params.clone()).ok()).flatten()
    }
}

/// Returns the name of a server for people.
pub(super) fn name_of(server: Option<&Implementation>) -> String {
    server.map_or_else(|| "the server".to_owned(), |server| server.name.clone())
}
