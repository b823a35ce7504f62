//! Which operations become tools, and how they are called.

use std::collections::HashMap;

use pintle::server::NamePattern;

use crate::{OpenApiError, answer::Fields, operation::Operation};

/// The program's rules about operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationRules {
    pub(crate) include: Vec<OperationPattern>,
    pub(crate) exclude: Vec<OperationPattern>,
    /// By id, or by method and path.
    pub(crate) names: HashMap<String, String>,
    pub(crate) descriptions: HashMap<String, String>,
    /// The operations that are read as resources.
    pub(crate) resources: Vec<OperationPattern>,
    /// The fields of the answers of operations.
    pub(crate) fields: Vec<(OperationPattern, Vec<String>)>,
}

/// A pattern of operations.
#[derive(Clone, Debug)]
pub(crate) enum OperationPattern {
    Tag(NamePattern),
    /// The method and the path.
    Key(NamePattern),
    Path(NamePattern),
    Id(NamePattern),
}

impl OperationPattern {
    pub(crate) fn parse(pattern: &str) -> Self {
        let new = |text: &str| NamePattern::new(text);
        match (pattern.strip_prefix("tag:"), pattern.split_once(' ')) {
            (Some(tag), _) => Self::Tag(new(tag)),
            (None, Some((method, path))) => {
                Self::Key(new(&format!("{} {path}", method.to_ascii_uppercase())))
            }
            (None, None) if pattern.starts_with('/') => Self::Path(new(pattern)),
            (None, None) => Self::Id(new(pattern)),
        }
    }

    fn matches(&self, operation: &Operation<'_>) -> bool {
        match self {
            Self::Tag(pattern) => operation.tags().any(|tag| pattern.matches(tag)),
            Self::Key(pattern) => pattern.matches(&operation.key()),
            Self::Path(pattern) => pattern.matches(operation.path),
            Self::Id(pattern) => operation.id().is_some_and(|id| pattern.matches(id)),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Tag(pattern) | Self::Key(pattern) | Self::Path(pattern) | Self::Id(pattern) => {
                pattern.as_str()
            }
        }
    }
}

impl OperationRules {
    /// Checks that each rule is about an operation: one that is misspelt must not have no effect.
    pub(crate) fn check(&self, operations: &[Operation<'_>]) -> Result<(), OpenApiError> {
        let of_fields = self.fields.iter().map(|(pattern, _)| pattern);
        for pattern in self.include.iter().chain(&self.exclude).chain(&self.resources).chain(of_fields) {
            if !operations.iter().any(|operation| pattern.matches(operation)) {
                let reason = format!(
                    "no operation is `{}`; write an id, `METHOD /path`, `/path` or `tag:NAME`, where `*` is any text",
                    pattern.text()
                );
                return Err(OpenApiError::setting(reason));
            }
        }
        for (pattern, fields) in &self.fields {
            let wrong =
                |reason| OpenApiError::setting(format!("the fields of `{}`: {reason}", pattern.text()));
            Fields::new(fields.clone()).map_err(wrong)?;
        }
        for name in self.names.keys().chain(self.descriptions.keys()) {
            if !operations.iter().any(|operation| is_named(operation, name)) {
                let reason = format!("there is no operation `{name}`; write its id, or `METHOD /path`");
                return Err(OpenApiError::setting(reason));
            }
        }
        Ok(())
    }

    /// Returns whether an operation becomes a tool, by the rules and by what the document says about it.
    pub(crate) fn admit(&self, operation: &Operation<'_>) -> bool {
        let is_any =
            |patterns: &[OperationPattern]| patterns.iter().any(|pattern| pattern.matches(operation));
        let is_excluded = operation.own("exclude").is_some_and(|value| value.value == true)
            || operation.own("enabled").is_some_and(|value| value.value == false);
        let is_included = is_any(&self.include) || self.include.is_empty() && !is_excluded;
        is_included && !is_any(&self.exclude)
    }

    /// Returns whether an operation is read as a resource.
    pub(crate) fn reads(&self, operation: &Operation<'_>) -> bool {
        self.resources.iter().any(|pattern| pattern.matches(operation))
    }

    /// Returns the name that an operation should have, as the program or the document says.
    pub(crate) fn name<'a>(&'a self, operation: &Operation<'a>) -> Option<&'a str> {
        let own = || operation.own("name")?.value.as_str().filter(|name| !name.is_empty());
        find(&self.names, operation).or_else(own)
    }

    pub(crate) fn description<'a>(&'a self, operation: &Operation<'a>) -> Option<&'a str> {
        find(&self.descriptions, operation).or_else(|| operation.own("description")?.value.as_str())
    }

    /// Returns the fields that are left of the answers of an operation, as the program or the document says; `None` for all.
    pub(crate) fn fields(&self, operation: &Operation<'_>) -> Result<Option<Fields>, String> {
        let rules = self.fields.iter().filter(|(pattern, _)| pattern.matches(operation));
        let given: Vec<_> = rules.flat_map(|(_, fields)| fields.iter().cloned()).collect();
        let own = operation.own("fields").filter(|_| given.is_empty());
        let fields = match own {
            Some(own) => serde_json::from_value(own.value.clone())
                .map_err(|_| "`x-mcp-fields` is no list of texts; write one such as `[id, owner.name]`")?,
            None => given,
        };
        if own.is_none() && fields.is_empty() { Ok(None) } else { Fields::new(fields).map(Some) }
    }
}

fn is_named(operation: &Operation<'_>, name: &str) -> bool {
    operation.id() == Some(name) || operation.key() == name
}

fn find<'a>(rules: &'a HashMap<String, String>, operation: &Operation<'_>) -> Option<&'a str> {
    let found = operation.id().and_then(|id| rules.get(id)).or_else(|| rules.get(&operation.key()));
    found.map(String::as_str)
}
