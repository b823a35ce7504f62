use std::{fmt, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::{RpcError, schema::CallToolResult};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::uri::{DecodeError, Vars};

/// The tool that a call was routed to, as far as its arguments and its result depend on it.
pub(crate) trait CalledTool: Send + Sync {
    fn name(&self) -> &str;
    /// Returns whether a task of the tool runs again after the end of its process.
    fn is_resumable(&self) -> bool;
    fn has_output_schema(&self) -> bool;
    /// Explains why arguments do not have the type that the handler takes.
    fn explain_arguments(&self, arguments: &str) -> Option<String>;
    /// Checks a result against the output schema.
    fn check_result(&self, result: &CallToolResult) -> Result<(), String>;
}

/// A call of a tool.
pub(crate) struct ToolCall {
    pub(crate) tool: Arc<dyn CalledTool>,
    /// The arguments with their defaults, if the client omitted some that have one.
    pub(crate) filled: Option<String>,
}

/// The prompt or resource template that a call was routed to.
pub(crate) trait TextTarget: fmt::Debug + Send + Sync {
    /// Checks texts that have the type that the handler takes against its schema. Returns what is wrong.
    fn fault(&self, vars: &Vars) -> Option<String>;
    /// Returns the MIME type that a resource template declares.
    fn mime_type(&self) -> Option<&str>;
}

/// The named texts of a call: the arguments of a prompt, or the variables of a resource template.
#[derive(Debug)]
pub(crate) struct TextArguments {
    target: Arc<dyn TextTarget>,
    vars: Vars,
    /// The URI, if they are the variables of a resource template.
    uri: Option<String>,
}

impl TextArguments {
    pub(crate) fn of_prompt(target: Arc<dyn TextTarget>, vars: Vars) -> Self {
        Self { target, vars, uri: None }
    }

    pub(crate) fn of_template(target: Arc<dyn TextTarget>, vars: Vars, uri: String) -> Self {
        Self { target, vars, uri: Some(uri) }
    }

    pub(crate) fn vars(&self) -> &Vars {
        &self.vars
    }

    /// Returns the MIME type of the resource template.
    pub(crate) fn mime_type(&self) -> Option<&str> {
        self.target.mime_type()
    }

    /// Decodes the texts as a type and checks them against its schema.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, Outcome> {
        let value = self.vars.decode().map_err(|error| self.refuse(self.reason(&error)))?;
        self.target.fault(&self.vars).map_or(Ok(value), |reason| Err(self.refuse(reason)))
    }

    /// Names the variable at fault by what it is here: an `argument` of a prompt or a `variable` of a template.
    fn reason(&self, error: &DecodeError) -> String {
        let noun = if self.uri.is_some() { "variable" } else { "argument" };
        match error.variable() {
            Some(name) => format!("{noun} `{name}`: {}", error.message()),
            None => error.message().to_owned(),
        }
    }

    /// Refuses the call. A URI whose variables do not fit names no resource: with `uri` in its data the error gets the code
    /// that its revision has for that, and unlike `Outcome::NotFound` it has the reason.
    fn refuse(&self, reason: String) -> Outcome {
        let error = RpcError::invalid_params(reason);
        Outcome::Failed(match &self.uri {
            None => error,
            Some(uri) => error.with_data(&json!({ "uri": uri })),
        })
    }
}
