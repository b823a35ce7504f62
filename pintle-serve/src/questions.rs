use std::collections::BTreeMap;

use pintle::{
    server::{Cx, Form, ToolError},
    types::JsonObject,
};
use serde_json::{Value, json};

use crate::argument::Argument;

/// The beginning of the keys of these questions. A worker has no such key.
pub(crate) const OWN_KEYS: &str = "tool.";
/// The most characters of a plan that the user is shown.
const SHOWN: usize = 2_000;

/// The questions that the user is asked before a tool acts.
#[derive(Debug)]
pub(crate) struct Questions {
    /// The schemas of the arguments that are asked for if a call leaves them out.
    asked: BTreeMap<String, Value>,
    pub(crate) confirm: bool,
}

impl Questions {
    /// Makes the arguments of these names optional. Their defaults are those of the form.
    pub(crate) fn new(
        names: &[String],
        confirm: bool,
        arguments: &mut BTreeMap<String, Argument>,
    ) -> Result<Self, String> {
        let mut asked = BTreeMap::new();
        for name in names {
            let Some(argument) = arguments.get_mut(name) else {
                return Err(format!("`ask` names `{name}`, which is no argument: add it to `arguments`"));
            };
            let mut schema = argument.schema.clone();
            argument.is_required = false;
            if let (Some(listed), Some(asked)) = (argument.schema.as_object_mut(), schema.as_object_mut()) {
                listed.remove("default");
                // Forms have no patterns. The answer is checked by the whole schema.
                asked.remove("pattern");
            }
            asked.insert(name.clone(), schema);
        }
        let questions = Self { asked, confirm };
        match questions.form(|_| true) {
            Err(reason) => Err(format!("an argument of `ask` cannot be asked for: {reason}")),
            Ok(_) => Ok(questions),
        }
    }

    /// Returns the form for the arguments that are missing; `None` if none is.
    fn form(&self, is_missing: impl Fn(&str) -> bool) -> Result<Option<Form>, String> {
        let missing: Vec<_> = self.asked.iter().filter(|(name, _)| is_missing(name)).collect();
        let required: Vec<_> = missing.iter().map(|(name, _)| name).collect();
        let properties: JsonObject =
            missing.iter().map(|(name, schema)| ((*name).clone(), (*schema).clone())).collect();
        if properties.is_empty() {
            return Ok(None);
        }
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Form::from_schema(&schema).map(Some).map_err(|error| error.to_string())
    }

    /// Returns whether a call leaves out an argument that is asked for.
    pub(crate) fn asks(&self, arguments: &JsonObject) -> bool {
        self.asked.keys().any(|name| !arguments.contains_key(name))
    }

    /// Returns the arguments with those that the user gave.
    pub(crate) async fn complete(
        &self,
        cx: &Cx,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<JsonObject, ToolError> {
        let form = self.form(|name| !arguments.contains_key(name)).map_err(ToolError::new)?;
        let Some(form) = form else { return Ok(arguments) };
        let given = cx
            .elicit_form(&format!("{OWN_KEYS}arguments"), &format!("`{tool}` needs more to begin."), &form)
            .await?;
        let Some(given) = given.accepted() else {
            return Err(ToolError::new(format!("the user did not give the arguments that `{tool}` needs")));
        };
        Ok(arguments.into_iter().chain(given).collect())
    }

    /// Has the user confirm what the tool would do.
    pub(crate) async fn confirm(&self, cx: &Cx, tool: &str, plan: &str) -> Result<(), ToolError> {
        let mut shown: String = plan.chars().take(SHOWN).collect();
        let more = plan.chars().count().saturating_sub(SHOWN);
        if more > 0 {
            shown += &format!("… and {more} characters more");
        }
        match cx
            .elicit::<()>(&format!("{OWN_KEYS}confirm"), &format!("Run `{tool}`?\n\n{shown}"))
            .await?
            .accepted()
        {
            Some(()) => Ok(()),
            None => Err(ToolError::new(format!("the user does not want `{tool}` to run"))),
        }
    }
}
