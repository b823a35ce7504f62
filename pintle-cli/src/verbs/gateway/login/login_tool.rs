use pintle::{
    server::{Outcome, Target},
    types::{
        ErrorCode, JsonObject, RpcError,
        schema::{CallToolResult, ElicitUrlParams, Tool, ToolAnnotations, UrlElicitationRequiredData},
    },
};

/// The tool that a principal has until it has logged in to a target. It returns the link.
pub(in super::super) struct LoginTool<'a> {
    /// The name of the target.
    pub(in super::super) target: &'a str,
    /// The text before the `_` of its names; it is empty if they have no prefix.
    pub(in super::super) prefix: String,
    pub(in super::super) link: String,
}

impl LoginTool<'_> {
    fn name(&self) -> String {
        let prefix = if self.prefix.is_empty() { self.target } else { &self.prefix };
        format!("{prefix}_login")
    }

    /// Returns whether a request is about this tool.
    pub(in super::super) fn is(&self, target: &Target<'_>) -> bool {
        matches!(target, Target::Tool(name) if *name == self.name())
    }

    /// Returns the entry of the list.
    pub(in super::super) fn entry(&self) -> Tool {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), "object".into());
        let mut tool = Tool::new(self.name(), schema);
        tool.description = Some(format!(
            "Returns the link with which the user logs in to `{}`. Its tools can be used after that.",
            self.target
        ));
        let mut hints = ToolAnnotations::default();
        hints.read_only_hint = Some(true);
        tool.annotations = Some(hints);
        tool
    }

    /// Returns the result of a call.
    pub(in super::super) fn result(&self) -> Outcome {
        let text = format!(
            "To use the tools of `{}`, open {} in a browser, log in there, and list the tools again.",
            self.target, self.link
        );
        Outcome::Complete(CallToolResult::raw_text(&text).into())
    }
}

/// Returns an error with which a client asks its user to open the page of a login.
pub(in super::super) fn login_required(target: &str, link: &str, message: String) -> RpcError {
    let mut page = ElicitUrlParams::new(format!("Log in to `{target}`."), link);
    page.elicitation_id = Some(elicitation_id(link).to_owned());
    RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, message)
        .with_data(&UrlElicitationRequiredData::new(vec![page]))
}

/// Returns the id of the question to open the page at a link.
pub(in super::super) fn elicitation_id(link: &str) -> &str {
    link.rsplit('/').next().unwrap_or_default()
}
