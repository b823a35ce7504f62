//! Questions of every kind in every revision that has them, and what a client does meanwhile, with each request at another process.

use http::StatusCode;
use pintle::{
    proto::{Revision, http::Streams},
    server::{Cx, ToolError},
    types::{
        method,
        schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fleet, Node, Running, expect_text, kit_client::KitClient};
use crate::kits::harness::{Checked, wrong};

/// A kind of question.
#[derive(Clone, Copy, Debug)]
pub(super) enum QuestionKind {
    Roots,
    Sampling,
    Form,
    Url,
}

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

/// The text of every answer, and of the result of the call.
const TEXT: &str = "word://1";

impl QuestionKind {
    pub(super) const ALL: [Self; 4] = [Self::Roots, Self::Sampling, Self::Form, Self::Url];

    /// The tool that asks such a question.
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::Roots => "ask",
            Self::Sampling => "ask_model",
            Self::Form => "ask_form",
            Self::Url => "ask_url",
        }
    }

    /// Returns whether every revision has it.
    fn is_in_all(self) -> bool {
        matches!(self, Self::Roots | Self::Sampling)
    }

    /// Asks it.
    pub(super) async fn ask(self, cx: &Cx) -> Result<String, ToolError> {
        Ok(match self {
            Self::Roots => {
                let roots = cx.roots().await?;
                roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(",")
            }
            Self::Sampling => {
                let message = SamplingMessage::new(Role::User, ContentBlock::text("?"));
                cx.sample("word", CreateMessageParams::new(vec![message], 10)).await?.text()
            }
            Self::Form => {
                let answer = cx.elicit::<Word>("word", "?").await?.accepted();
                answer.map(|answer| answer.word).unwrap_or_default()
            }
            Self::Url => match cx.elicit_url("word", "?", "https://kit.invalid/").await? {
                true => TEXT.to_owned(),
                false => String::new(),
            },
        })
    }

    fn answer(self) -> Value {
        match self {
            Self::Roots => json!({"roots": [{"uri": TEXT}]}),
            Self::Sampling => {
                json!({"role": "assistant", "model": "kit", "content": {"type": "text", "text": TEXT}})
            }
            Self::Form => json!({"action": "accept", "content": {"word": TEXT}}),
            Self::Url => json!({"action": "accept"}),
        }
    }
}

/// The behaviour of a client while a call waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meanwhile {
    Reads,
    /// Reads the stream at the other process.
    Resumes,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum QuestionEnd {
    Answer,
    Cancel,
}

/// Checks all kinds of questions in all revisions with sessions.
pub(super) async fn asked_in_sessions(fleet: Fleet) -> Checked {
    // The newest first.
    for (age, revision) in Revision::all().filter(|revision| revision.facts().keeps_session).enumerate() {
        for kind in QuestionKind::ALL {
            if !kind.is_in_all() && age > 0 && !has_kind(&fleet, revision, kind).await? {
                continue;
            }
            for meanwhile in [Meanwhile::Reads, Meanwhile::Resumes] {
                if meanwhile == Meanwhile::Resumes && !Streams::of(revision).resumable {
                    continue;
                }
                for end in [QuestionEnd::Answer, QuestionEnd::Cancel] {
                    for (here, there) in [(&fleet.a, &fleet.b), (&fleet.b, &fleet.a)] {
                        let checked = asked(&fleet, revision, kind, meanwhile, end, (here, there)).await;
                        checked.map_err(|error| {
                            format!("{} {kind:?}, {meanwhile:?}, {end:?}: {error}", revision.as_str())
                        })?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns whether a revision has questions of a kind. In one that does not, the call fails.
async fn has_kind(fleet: &Fleet, revision: Revision, kind: QuestionKind) -> Checked<bool> {
    let client = KitClient::open_as(&fleet.a.http, revision).await?;
    let (_, message) = client.call_tool(&fleet.a.http, 1, kind.tool()).await?.message().await?;
    client.delete(&fleet.a.http).await?;
    fleet.expect_running(0).await?;
    Ok(!message["method"].is_null())
}

/// Makes a call at `here`, and does all else at `there`.
async fn asked(
    fleet: &Fleet,
    revision: Revision,
    kind: QuestionKind,
    meanwhile: Meanwhile,
    end: QuestionEnd,
    (here, there): (&Node, &Node),
) -> Checked {
    let client = KitClient::open_as(&there.http, revision).await?;
    let mut stream = client.call_tool(&here.http, 1, kind.tool()).await?;
    let (last, question) = stream.message().await?;
    if question["id"].is_null() || question["method"].is_null() {
        return wrong(format!("expected a question, received {question}"));
    }
    fleet.expect_running(1).await?;
    if meanwhile == Meanwhile::Resumes {
        drop(stream);
        stream = client.get(&there.http, Some(&last)).await?.expect_status(StatusCode::OK)?;
    }
    let message = match end {
        QuestionEnd::Answer => json!({"jsonrpc": "2.0", "id": question["id"], "result": kind.answer()}),
        QuestionEnd::Cancel => {
            let params = json!({"requestId": 1});
            json!({"jsonrpc": "2.0", "method": method::NOTIFICATIONS_CANCELLED, "params": params})
        }
    };
    client.post(&there.http, &message).await?.expect_status(StatusCode::ACCEPTED)?;
    let rest = stream.rest().await?;
    let response = rest.iter().find(|message| message["id"] == 1 && message["method"].is_null());
    match (end, response) {
        (QuestionEnd::Answer, Some(response)) => expect_text(response, TEXT)?,
        (QuestionEnd::Answer, None) => return wrong(format!("the call was not answered: {rest:?}")),
        (QuestionEnd::Cancel, None) => {}
        (QuestionEnd::Cancel, Some(response)) => {
            return wrong(format!("a cancelled call was answered with {response}"));
        }
    }
    fleet.expect_running(0).await
}

/// Checks all kinds of questions of stateless calls: the answer goes to the other process, with the state.
pub(super) async fn asked_without_sessions(fleet: Fleet) -> Checked {
    for revision in Revision::all().filter(|revision| !revision.facts().keeps_session) {
        for kind in QuestionKind::ALL {
            for (here, there) in [(&fleet.a, &fleet.b), (&fleet.b, &fleet.a)] {
                let client = KitClient::without_session(revision);
                let mut params = json!({"name": kind.tool()});
                let asked = client.call_stateless(&here.http, 1, &params).await?.message().await?.1;
                let questions = asked["result"]["inputRequests"].as_object();
                let questions = questions.ok_or_else(|| format!("expected a question, received {asked}"))?;
                let answers = questions.keys().map(|key| (key.clone(), kind.answer()));
                params["inputResponses"] = Value::Object(answers.collect());
                params["requestState"] = asked["result"]["requestState"].clone();
                // The same again gets the same, wherever it is sent.
                for (id, node) in [(2, there), (3, here), (4, there)] {
                    let answered = client.call_stateless(&node.http, id, &params).await?.message().await?.1;
                    expect_text(&answered, TEXT).map_err(|error| format!("{kind:?}: {error}"))?;
                }
            }
        }
    }
    fleet.expect_running(0).await
}

/// Runs a question as a call that is counted.
pub(super) async fn counted(kind: QuestionKind, cx: Cx, running: Running) -> Result<String, ToolError> {
    let _running = running;
    kind.ask(&cx).await
}
