use std::sync::Arc;

use pintle_proto::server::Outcome;
use pintle_types::RpcError;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{
    server::{PromptRoute, TemplateRoute, ToolRoute, core::catalogue::texts::Texts},
    uri::{DecodeError, Vars},
};

/// A call of a tool.
pub(crate) struct ToolCall {
    pub(crate) tool: Arc<ToolRoute>,
    /// The arguments with their defaults, if the client omitted some that have one.
    pub(crate) filled: Option<String>,
}

/// The prompt or resource template that a call was routed to.
#[derive(Debug)]
enum TextRoute {
    Prompt(Arc<PromptRoute>),
    Template(Arc<TemplateRoute>),
}

/// The named texts of a call: the arguments of a prompt, or the variables of a resource template.
#[derive(Debug)]
pub(crate) struct TextArguments {
    route: TextRoute,
    vars: Vars,
    /// The URI, if they are the variables of a resource template.
    uri: Option<String>,
}

impl TextArguments {
    pub(crate) fn of_prompt(route: Arc<PromptRoute>, vars: Vars) -> Self {
        Self { route: TextRoute::Prompt(route), vars, uri: None }
    }

    pub(crate) fn of_template(route: Arc<TemplateRoute>, vars: Vars, uri: String) -> Self {
        Self { route: TextRoute::Template(route), vars, uri: Some(uri) }
    }

    pub(crate) fn vars(&self) -> &Vars {
        &self.vars
    }

    /// Returns the MIME type of the resource template.
    pub(crate) fn mime_type(&self) -> Option<&str> {
        match &self.route {
            TextRoute::Prompt(_) => None,
            TextRoute::Template(route) => route.resource_template.mime_type.as_deref(),
        }
    }

    /// Decodes the texts as a type and checks them against its schema.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, Outcome> {
        let value = self.vars.decode().map_err(|error| self.refuse(self.reason(&error)))?;
        self.checks().fault(&self.vars).map_or(Ok(value), |reason| Err(self.refuse(reason)))
    }

    /// Returns the checks of texts against the schema of the handler.
    fn checks(&self) -> &Texts {
        match &self.route {
            TextRoute::Prompt(route) => &route.texts,
            TextRoute::Template(route) => &route.texts,
        }
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
