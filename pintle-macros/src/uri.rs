use syn::{Error, LitStr, Result};

/// The URI or URI template of a resource.
pub(crate) struct Uri {
    pub(crate) text: LitStr,
    /// The variables of a template; a fixed URI has none.
    pub(crate) variables: Vec<String>,
}

impl Uri {
    /// Parses the variables. Other errors of a template are found when the server is checked.
    pub(crate) fn parse(text: LitStr) -> Result<Self> {
        match variables(&text.value()) {
            Ok(variables) => Ok(Self { text, variables }),
            Err(message) => Err(Error::new(text.span(), message)),
        }
    }

    pub(crate) fn is_template(&self) -> bool {
        !self.variables.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.variables.iter().any(|known| known == name)
    }

    /// Returns a suggestion for an unknown variable.
    pub(crate) fn advice(&self) -> String {
        match &*self.variables.join("`, `") {
            "" => {
                format!("write it into the URI, as `{}/{{name}}`, or take `Cx` or `State`", self.text.value())
            }
            names => format!("it has `{names}`"),
        }
    }
}

fn variables(text: &str) -> std::result::Result<Vec<String>, String> {
    if !text.starts_with('{') && !text.split('{').next().unwrap_or_default().contains(':') {
        return Err(format!("`{text}` is not a URI: start with a scheme, as in `notes://{{id}}`"));
    }
    let mut names: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(place) = rest.find(['{', '}']) {
        let inner = rest[place..].strip_prefix('{').ok_or("this `}` closes nothing: write `{name}`")?;
        let end = inner.find(['{', '}']).filter(|end| inner[*end..].starts_with('}'));
        let end = end.ok_or("this `{` is not closed: write `{name}`")?;
        let expression =
            inner[..end].strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(&inner[..end]);
        for variable in expression.split(',') {
            let name = variable.split([':', '*']).next().unwrap_or_default();
            let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '%');
            if name.is_empty() || !name.chars().all(fits) {
                return Err(format!("`{name}` is not a variable's name: use letters, digits and `_`"));
            }
            if names.iter().any(|known| known == name) {
                return Err(format!("`{name}` occurs twice: rename one of them"));
            }
            names.push(name.to_owned());
        }
        rest = &inner[end + 1..];
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_whatever_the_operator() {
        for (text, names) in [
            ("notes://all", &[][..]),
            ("notes://{id}", &["id"]),
            ("src://{+file}{?from,to}", &["file", "from", "to"]),
            ("a://{x:3}/{list*}{#rest}", &["x", "list", "rest"]),
            ("{+uri}", &["uri"]),
        ] {
            assert_eq!(variables(text).unwrap(), names, "{text}");
        }
        for (text, message) in [
            ("notes", "start with a scheme"),
            ("notes://{id", "is not closed"),
            ("notes://{a{b}}", "is not closed"),
            ("notes://id}", "closes nothing"),
            ("notes://{}", "is not a variable's name"),
            ("notes://{a b}", "is not a variable's name"),
            ("notes://{a}/{a}", "occurs twice"),
        ] {
            let error = variables(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
