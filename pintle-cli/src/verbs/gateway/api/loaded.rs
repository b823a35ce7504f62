use std::path::Path;

use pintle::types::{JsonObject, schema::Tool};
use pintle_openapi::{ApiTools, DocumentFiles, LeftOut, PlannedRequest};
use serde_json::{Value, json};

use super::{ApiEntry, entry::OpenFailure};
use crate::{output::counted, verbs::gateway::names::accepted};

/// The limit of notes of a kind.
const SHOWN: usize = 5;

/// The tools of an API, as its document was when it was read.
#[derive(Clone, Debug)]
pub(in crate::verbs::gateway) struct LoadedApi {
    pub(in crate::verbs::gateway) tools: ApiTools,
    files: DocumentFiles,
    /// Whether requests have a token of the caller.
    has_exchange: bool,
}

/// Those of one entry are the same if the files of the document are.
impl PartialEq for LoadedApi {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl LoadedApi {
    /// Reads the document of an entry. It blocks.
    pub(in crate::verbs::gateway) fn load(
        name: &str,
        entry: &ApiEntry,
        folder: &Path,
    ) -> Result<Self, OpenFailure> {
        let document = entry.open(name, folder)?;
        Ok(Self {
            tools: document.build()?,
            files: document.files().clone(),
            has_exchange: entry.exchange().is_some(),
        })
    }

    /// Returns the paths of the document and the files that it refers to.
    pub(in crate::verbs::gateway) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.paths()
    }

    /// Returns whether a file of the document has changed since it was read. It blocks.
    pub(in crate::verbs::gateway) fn has_changed(&self) -> bool {
        self.files.have_changed()
    }

    /// Returns the tool that is offered by this name, with this prefix of all names.
    pub(in crate::verbs::gateway) fn offered(&self, prefix: &str, name: &str) -> Option<&Tool> {
        self.tools.tools().find(|tool| offered_name(prefix, tool) == name)
    }

    /// Returns the names that tools are offered by.
    pub(in crate::verbs::gateway) fn names(&self, prefix: &str) -> Vec<String> {
        self.tools.tools().map(|tool| offered_name(prefix, tool)).collect()
    }

    /// Returns the request that a call of a tool would send.
    pub(in crate::verbs::gateway) fn plan(
        &self,
        tool: &Tool,
        arguments: &JsonObject,
    ) -> Option<Result<PlannedRequest, String>> {
        let mut planned = self.tools.plan(&tool.name, arguments)?;
        if let (Ok(planned), true) = (&mut planned, self.has_exchange) {
            planned.secret_header("authorization");
        }
        Some(planned)
    }

    /// Returns how many tools and resources there are, and the operations that are none.
    pub(in crate::verbs::gateway) fn json(&self) -> Value {
        let left_out = self.tools.left_out().iter();
        let left_out: Vec<_> =
            left_out.map(|one| json!({ "operation": one.operation, "reason": one.reason })).collect();
        json!({
            "tools": self.tools.tools().count(),
            "resources": self.tools.resources().len(),
            "templates": self.tools.templates().len(),
            "leftOut": left_out,
            "warnings": self.tools.warnings(),
        })
    }

    /// Returns how many tools and resources there are.
    pub(in crate::verbs::gateway) fn summary(&self) -> String {
        let tools = counted(self.tools.tools().count(), "tool", "tools");
        let kinds = [(self.tools.resources().len(), "resource"), (self.tools.templates().len(), "template")];
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        kinds.fold(tools, |tools, (count, kind)| {
            format!("{tools}, {}", counted(count, kind, &format!("{kind}s")))
        })
    }

    /// Returns the operations that are no tools, with their reasons, and the warnings, as far as they are shown.
    pub(in crate::verbs::gateway) fn notes(&self) -> Vec<String> {
        let reason = |one: &LeftOut| format!("`{}` is left out: {}", one.operation, one.reason);
        let left_out = self.tools.left_out().iter().map(reason);
        let left_out = shown(left_out, "more are left out");
        left_out.into_iter().chain(shown(self.tools.warnings().iter().cloned(), "more warnings")).collect()
    }
}

/// Returns the first lines, and how many there are more.
fn shown(lines: impl ExactSizeIterator<Item = String>, rest: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("{more} {rest}: `--check --json` has all of them"));
    lines.take(SHOWN).chain(more).collect()
}

fn offered_name(prefix: &str, tool: &Tool) -> String {
    match prefix {
        "" => accepted(&tool.name).into_owned(),
        prefix => accepted(&format!("{prefix}_{}", tool.name)).into_owned(),
    }
}
