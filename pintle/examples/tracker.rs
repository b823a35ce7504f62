//! An issue tracker: tools that share state, resources by template, completion, a prompt, a confirmation before something is
//! deleted, and errors that state what to do instead.
//!
//! ```sh
//! cargo run --example tracker                                          # for a host that starts it
//! cargo run --example tracker --features http-server -- --http         # at http://127.0.0.1:8000/mcp
//! ```

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::{
    Server,
    server::{Cx, Json, Listen, Partial, RequestError, State, ToolError},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Enums become the allowed values of an argument, and are completed.
#[derive(Clone, Copy, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Open,
    Closed,
}

/// An issue, as clients read it. Its schema is the output schema of the tools that return one.
#[derive(Clone, JsonSchema, Serialize)]
struct Issue {
    id: u32,
    title: String,
    status: Status,
    comments: Vec<String>,
}

#[derive(JsonSchema, Serialize)]
struct Found {
    issues: Vec<Issue>,
    /// The number of matching issues, which may be more than are listed.
    total: usize,
}

/// The form that a user fills in before an issue is deleted.
#[derive(Deserialize, JsonSchema)]
struct Deletion {
    /// Delete the issue with all comments?
    confirmed: bool,
}

#[derive(Default)]
struct Tracker {
    issues: Mutex<BTreeMap<u32, Issue>>,
}

/// The tools, resources and prompts. Each takes `self` and what it needs of the call.
#[pintle::handlers]
impl Tracker {
    /// Create an issue.
    #[tool(destructive = false, open_world = false)]
    async fn create_issue(
        &self,
        cx: Cx,
        /// What is wrong, in one line.
        #[arg(min_length = 3, max_length = 120)]
        title: String,
    ) -> Json<Issue> {
        let issue = self.with(|issues| {
            let id = issues.keys().next_back().map_or(1, |last| last + 1);
            let issue = Issue { id, title, status: Status::Open, comments: Vec::new() };
            issues.insert(id, issue.clone());
            issue
        });
        // Notifies the clients that have subscribed to this resource.
        cx.server().resource_updated("issues://open");
        Json(issue)
    }

    /// Find issues by their title and status.
    #[tool(read_only, open_world = false)]
    async fn search_issues(
        &self,
        /// A part of the title.
        #[arg(default = "")]
        text: String,
        status: Option<Status>,
        #[arg(default = 20, minimum = 1, maximum = 100)] limit: usize,
    ) -> Json<Found> {
        let wanted = |issue: &&Issue| {
            issue.title.contains(&text) && status.is_none_or(|status| issue.status == status)
        };
        let mut issues: Vec<_> = self.with(|issues| issues.values().filter(wanted).cloned().collect());
        let total = issues.len();
        issues.truncate(limit);
        Json(Found { issues, total })
    }

    /// Add a comment to an issue.
    #[tool(destructive = false, open_world = false)]
    async fn comment(
        &self,
        cx: Cx,
        id: u32,
        #[arg(min_length = 1)] text: String,
    ) -> Result<Json<Issue>, ToolError> {
        self.change(&cx, id, |issue| issue.comments.push(text))
    }

    /// Close an issue.
    #[tool(destructive = false, idempotent, open_world = false)]
    async fn close_issue(&self, cx: Cx, id: u32) -> Result<Json<Issue>, ToolError> {
        self.change(&cx, id, |issue| issue.status = Status::Closed)
    }

    /// Delete an issue with its comments, if the user confirms it.
    #[tool(open_world = false)]
    async fn delete_issue(&self, cx: Cx, id: u32) -> Result<String, ToolError> {
        let title = self.find(id).ok_or_else(|| unknown(id))?.title;
        if !cx.can_elicit() {
            return Err(ToolError::new("the user cannot be asked: close the issue instead"));
        }
        // Reading comes before the question and acting after it: the handler may run again from the start.
        let question = format!("Delete issue {id}, `{title}`?");
        let answer = cx.elicit::<Deletion>("deletion", &question).await?.accepted();
        if !answer.is_some_and(|answer| answer.confirmed) {
            return Ok(format!("the user keeps issue {id}"));
        }
        self.with(|issues| issues.remove(&id)).ok_or_else(|| unknown(id))?;
        cx.server().resource_updated("issues://open");
        Ok(format!("issue {id} is deleted"))
    }

    /// The open issues, one on each line.
    #[resource("issues://open", mime_type = "text/plain")]
    async fn open_issues(&self) -> String {
        self.with(|issues| {
            let open = issues.values().filter(|issue| issue.status == Status::Open);
            open.map(|issue| format!("{}: {}", issue.id, issue.title)).collect::<Vec<_>>().join("\n")
        })
    }

    /// An issue with its comments. `None` means "not found".
    #[resource("issue://{id}")]
    async fn issue(&self, #[arg(complete = known_ids)] id: u32) -> Option<Json<Issue>> {
        self.find(id).map(Json)
    }

    /// Decide what to do about an issue.
    #[prompt]
    async fn triage(
        &self,
        /// The number of the issue.
        #[arg(complete = known_ids)]
        id: u32,
    ) -> Result<String, RequestError> {
        // An error of a prompt or a resource is for the client, not for the model.
        let issue = self.find(id).ok_or_else(|| RequestError::bad_request(unknown(id)))?;
        let comments = issue.comments.join("\n- ");
        Ok(format!(
            "Decide whether to fix, postpone or close this issue.\n\n# {}\n\n- {comments}",
            issue.title
        ))
    }

    /// Locks the issues. The guard never lives across an `.await`.
    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<u32, Issue>) -> T) -> T {
        look(&mut self.issues.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn find(&self, id: u32) -> Option<Issue> {
        self.with(|issues| issues.get(&id).cloned())
    }

    fn change(&self, cx: &Cx, id: u32, change: impl FnOnce(&mut Issue)) -> Result<Json<Issue>, ToolError> {
        let changed = self.with(|issues| {
            let issue = issues.get_mut(&id)?;
            change(issue);
            Some(issue.clone())
        });
        let issue = changed.ok_or_else(|| unknown(id))?;
        cx.server().resource_updated(format!("issue://{id}"));
        cx.server().resource_updated("issues://open");
        Ok(Json(issue))
    }
}

/// The model reads this text, so it names the next step.
fn unknown(id: u32) -> String {
    format!("there is no issue {id}: `search_issues` lists those that exist")
}

/// Completes the number of an issue. A completer is a function, so it takes the tracker as state.
async fn known_ids(State(tracker): State<Arc<Tracker>>, typed: Partial) -> Vec<String> {
    let ids: Vec<_> = tracker.with(|issues| issues.keys().map(ToString::to_string).collect());
    ids.into_iter().filter(|id| id.starts_with(&typed.value)).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let tracker = Arc::new(Tracker::default());
    Server::new("tracker", "1.0.0")
        .instructions("Search before you create an issue. Read `issue://{id}` for the comments.")
        .with_state(tracker.clone())
        .routes(tracker.routes())
        .run(Listen::from_args())
        .await
}
