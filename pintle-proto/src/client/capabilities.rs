use pintle_types::{RawObject, method};

/// The questions that this client can answer, according to the capabilities that it declares.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Capabilities {
    /// `elicitation` in form mode, which an empty object implies.
    pub(super) elicitation_form: bool,
    /// `elicitation` in URL mode.
    pub(super) elicitation_url: bool,
    /// `sampling`.
    pub(super) sampling: bool,
    /// `sampling` with tools.
    pub(super) sampling_tools: bool,
    /// `roots`.
    pub(super) roots: bool,
    /// Whether result types that this client does not know are results.
    pub(super) any_result_type: bool,
}

/// The reason why a question cannot be answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cannot {
    /// The method is not that of a question.
    Unknown,
    /// The capability for this kind of question is not declared.
    Undeclared(&'static str),
    /// The capability is declared, but not for this form of question.
    Partly(&'static str),
}

impl Capabilities {
    /// Reads a client's `capabilities`. A member of another shape counts as not declared.
    pub(super) fn of(capabilities: &RawObject) -> Self {
        let part = |name| capabilities.decode_member::<RawObject>(name).ok().flatten();
        let elicitation = part("elicitation");
        let url = elicitation.as_ref().is_some_and(|modes| modes.get("url").is_some());
        let form = elicitation.as_ref().is_some_and(|modes| modes.get("form").is_some());
        Self {
            elicitation_form: elicitation.is_some() && (form || !url),
            elicitation_url: url,
            sampling_tools: part("sampling").is_some_and(|sampling| sampling.get("tools").is_some()),
            sampling: part("sampling").is_some(),
            roots: part("roots").is_some(),
            any_result_type: false,
        }
    }

    /// Returns the methods of the tasks that a client runs, according to the `capabilities` that it declares in a session.
    pub(super) fn task_methods(capabilities: &RawObject) -> Vec<&'static str> {
        let Ok(Some(tasks)) = capabilities.decode_member::<RawObject>("tasks") else { return Vec::new() };
        let mut methods = vec![method::TASKS_GET, method::TASKS_RESULT];
        methods.extend(tasks.get("list").map(|_| method::TASKS_LIST));
        methods.extend(tasks.get("cancel").map(|_| method::TASKS_CANCEL));
        methods
    }

    /// Checks that the capability for a question with these params is declared.
    pub(super) fn answers(self, method: &str, params: &RawObject) -> Result<(), Cannot> {
        match method {
            method::ROOTS_LIST if self.roots => Ok(()),
            method::ROOTS_LIST => Err(Cannot::Undeclared("roots")),
            method::SAMPLING_CREATE_MESSAGE if !self.sampling => Err(Cannot::Undeclared("sampling")),
            method::SAMPLING_CREATE_MESSAGE => {
                let tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
                if tools && !self.sampling_tools { Err(Cannot::Partly("sampling.tools")) } else { Ok(()) }
            }
            method::ELICITATION_CREATE if !self.elicitation_form && !self.elicitation_url => {
                Err(Cannot::Undeclared("elicitation"))
            }
            method::ELICITATION_CREATE => {
                match params.decode_member::<Box<str>>("mode").ok().flatten().as_deref() {
                    Some("url") if !self.elicitation_url => Err(Cannot::Partly("elicitation.url")),
                    Some("url") => Ok(()),
                    // No mode means a form.
                    None | Some("form") if self.elicitation_form => Ok(()),
                    None | Some("form") => Err(Cannot::Partly("elicitation.form")),
                    Some(_) => Err(Cannot::Partly("elicitation")),
                }
            }
            _ => Err(Cannot::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Capabilities {
        Capabilities::of(&text.parse().unwrap())
    }

    #[test]
    fn an_empty_elicitation_means_forms() {
        assert!(of(r#"{"elicitation":{}}"#).elicitation_form);
        assert!(of(r#"{"elicitation":{"form":{}}}"#).elicitation_form);
        let url = of(r#"{"elicitation":{"url":{}}}"#);
        assert!(url.elicitation_url && !url.elicitation_form);
        let both = of(r#"{"elicitation":{"form":{},"url":{}}}"#);
        assert!(both.elicitation_url && both.elicitation_form);
        assert_eq!(of(r#"{"elicitation":true,"experimental":{}}"#), Capabilities::default());
    }
}
