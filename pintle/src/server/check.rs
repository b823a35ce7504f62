use pintle_types::schema::Tool;

/// How the arguments of a tool are checked against its schema, and what is said when they do not fit.
///
/// A schema that was made from a type and says no more than the type is not checked on the way in: reading the
/// arguments does that. It is asked only for words when they cannot be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    #[cfg(feature = "validation")]
    compiled: Option<Compiled>,
}

#[cfg(feature = "validation")]
#[derive(Clone, Debug)]
struct Compiled {
    schema: crate::schema::Schema,
    always: bool,
}

/// Without the feature nothing is checked but what reading the arguments checks.
impl Check {
    /// The check of a tool. `typed` says that its schema was made from the type that its handler takes.
    pub(crate) fn of(tool: &Tool, typed: bool) -> Result<Self, String> {
        let mut check = Self::default();
        #[cfg(feature = "validation")]
        {
            let schema = serde_json::Value::Object(tool.input_schema.clone());
            let compiled = crate::schema::Schema::for_arguments(&schema)
                .map_err(|error| format!("the input schema of `{}` cannot be used: {error}", tool.name))?;
            let always = !(typed && says_no_more(&schema));
            check.compiled = Some(Compiled { schema: compiled, always });
        }
        let _ = (tool, typed, &mut check);
        Ok(check)
    }

    /// Whether the schema asks for more than reading does.
    pub(crate) fn asks_more(&self) -> bool {
        #[cfg(feature = "validation")]
        return self.compiled.as_ref().is_some_and(|compiled| compiled.always);
        #[allow(unreachable_code, reason = "without the feature it is not")]
        false
    }

    /// What is wrong with the arguments, before the handler sees them.
    pub(crate) fn before(&self, arguments: &str) -> Result<(), String> {
        #[cfg(feature = "validation")]
        if self.compiled.as_ref().is_some_and(|compiled| compiled.always) {
            return self.explain(arguments).map_or(Ok(()), Err);
        }
        let _ = arguments;
        Ok(())
    }

    /// What is wrong with the arguments, if the schema can tell.
    pub(crate) fn explain(&self, arguments: &str) -> Option<String> {
        #[cfg(feature = "validation")]
        if let Some(Compiled { schema, .. }) = &self.compiled {
            return match serde_json::from_str(arguments) {
                Ok(value) => schema.check(&value).err().map(|faults| crate::schema::faults_text(&faults)),
                Err(error) => Some(format!("the arguments cannot be read: {error}")),
            };
        }
        let _ = arguments;
        None
    }
}

/// Whether a schema that was made from a type asks for nothing that reading the type does not ask for.
///
/// Only the plainest shapes count: structs, lists, options and scalars. Whatever else a schema says may be a wish of
/// the author's (a range, a pattern), and is checked.
#[cfg(feature = "validation")]
fn says_no_more(schema: &serde_json::Value) -> bool {
    use serde_json::Value;
    const SILENT: &[&str] = &["title", "description", "default", "format", "examples", "deprecated"];
    let Value::Object(members) = schema else { return false };
    members.iter().all(|(name, value)| match (&**name, value) {
        (name, _) if SILENT.contains(&name) => true,
        ("type" | "required", _) => true,
        // Unsigned integers: the type asks for that itself.
        ("minimum", value) => {
            value.as_i64() == Some(0) && members.get("type").is_some_and(|kind| kind == "integer")
        }
        ("properties" | "$defs", Value::Object(schemas)) => schemas.values().all(says_no_more),
        ("items", schema) => says_no_more(schema),
        ("$ref", Value::String(place)) => place.starts_with("#/$defs/"),
        ("anyOf", Value::Array(schemas)) => {
            // `Option` of a struct.
            schemas.len() == 2
                && schemas.iter().all(says_no_more)
                && schemas.iter().any(|schema| schema.get("type").is_some_and(|kind| kind == "null"))
        }
        _ => false,
    })
}

#[cfg(all(test, feature = "validation"))]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::server::extract::schema_of;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Plain {
        /// A number.
        number: u32,
        maybe: Option<Inner>,
        list: Vec<Inner>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        text: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Ranged {
        #[schemars(range(min = 1))]
        number: u32,
    }

    #[test]
    fn a_type_checks_itself_unless_the_author_asked_for_more() {
        assert!(says_no_more(&schema_of::<Plain>(false)), "{}", schema_of::<Plain>(false));
        assert!(!says_no_more(&schema_of::<Ranged>(false)), "{}", schema_of::<Ranged>(false));
    }
}
