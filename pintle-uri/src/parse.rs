use super::{error::TemplateError, percent::triplet};

/// A piece of a template.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Literal(String),
    Expression(Expression),
}

/// The contents of `{` and `}`.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) operator: Operator,
    pub(super) variables: Vec<Variable>,
}

/// A variable and its modifier.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) at: usize,
    pub(super) name: String,
    /// The limit of characters, from `:n`.
    pub(super) prefix: Option<usize>,
    /// `*`
    pub(super) explode: bool,
}

/// The operator at the start of an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameter,
    Query,
    Continuation,
}

impl Operator {
    /// Returns the text before the first value.
    pub(super) fn lead(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// Returns the text between values.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    /// Whether values are preceded by their names.
    pub(super) fn named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether reserved characters are not percent-encoded.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

/// Parses a template. Whether it can be matched is checked later.
pub(super) fn parse(template: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < template.len() {
        let rest = &template[at..];
        if rest.starts_with('{') {
            let end = rest.find('}').ok_or(TemplateError::Unclosed { at })?;
            let inside = &rest[1..end];
            if let Some(again) = inside.find('{') {
                return Err(TemplateError::Name { at: at + 1, name: inside[..again].to_owned() });
            }
            parts.push(Part::Expression(expression(inside, at + 1)?));
            at += end + 1;
        } else {
            let end = rest.find(['{', '}']).unwrap_or(rest.len());
            if rest[end..].starts_with('}') {
                return Err(TemplateError::Unopened { at: at + end });
            }
            let literal = &rest[..end];
            for (i, _) in literal.match_indices('%') {
                triplet(literal.as_bytes(), i).ok_or(TemplateError::Percent { at: at + i })?;
            }
            parts.push(Part::Literal(literal.to_owned()));
            at += end;
        }
    }
    Ok(parts)
}

fn expression(inside: &str, at: usize) -> Result<Expression, TemplateError> {
    let operator = match inside.chars().next() {
        Some('+') => Operator::Reserved,
        Some('#') => Operator::Fragment,
        Some('.') => Operator::Label,
        Some('/') => Operator::Path,
        Some(';') => Operator::Parameter,
        Some('?') => Operator::Query,
        Some('&') => Operator::Continuation,
        Some(operator @ ('=' | ',' | '!' | '@' | '|')) => {
            return Err(TemplateError::Operator { at, operator });
        }
        _ => Operator::Simple,
    };
    let mut at = at + usize::from(operator != Operator::Simple);
    let list = &inside[usize::from(operator != Operator::Simple)..];
    let mut variables = Vec::new();
    for text in list.split(',') {
        variables.push(variable(text, at)?);
        at += text.len() + 1;
    }
    Ok(Expression { operator, variables })
}

fn variable(text: &str, at: usize) -> Result<Variable, TemplateError> {
    let (text, explode) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
    let (name, prefix) = match text.split_once(':') {
        None => (text, None),
        Some((name, digits)) => {
            let bad = || TemplateError::Prefix { at, name: name.to_owned() };
            let plain = !explode && digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let length = if plain { digits.parse().map_err(|_| bad())? } else { 0 };
            if length == 0 || digits.starts_with('0') {
                return Err(bad());
            }
            (name, Some(length))
        }
    };
    if !is_name(name) {
        return Err(TemplateError::Name { at, name: name.to_owned() });
    }
    Ok(Variable { at, name: name.to_owned(), prefix, explode })
}

/// Whether this is a variable name: letters, digits, `_` and percent-encoded bytes, with single dots between them.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut i = 0;
    let mut after_dot = true;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'.' if !after_dot => {
                after_dot = true;
                i += 1;
                continue;
            }
            b'%' if triplet(bytes, i).is_some() => i += 3,
            b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => i += 1,
            _ => return false,
        }
        after_dot = false;
    }
    !after_dot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_and_where() {
        let name = |at, name: &str| TemplateError::Name { at, name: name.into() };
        let prefix = |at, name: &str| TemplateError::Prefix { at, name: name.into() };
        for (template, error) in [
            ("note://{title", TemplateError::Unclosed { at: 7 }),
            ("note://title}", TemplateError::Unopened { at: 12 }),
            ("a{b}c}", TemplateError::Unopened { at: 5 }),
            ("a{}", name(2, "")),
            ("a{+}", name(3, "")),
            ("a{b{c}}", name(2, "b")),
            ("a{b,}", name(4, "")),
            ("a{b c}", name(2, "b c")),
            ("a{b-c}", name(2, "b-c")),
            ("a{é}", name(2, "é")),
            ("a{.b.}", name(3, "b.")),
            ("a{b..c}", name(2, "b..c")),
            ("a{%4}", name(2, "%4")),
            ("a{=b}", TemplateError::Operator { at: 2, operator: '=' }),
            ("a{|b}", TemplateError::Operator { at: 2, operator: '|' }),
            ("a{b:}", prefix(2, "b")),
            ("a{b:0}", prefix(2, "b")),
            ("a{b:10000}", prefix(2, "b")),
            ("a{b:-1}", prefix(2, "b")),
            ("a{b:3*}", prefix(2, "b")),
            ("a%zz{b}", TemplateError::Percent { at: 1 }),
        ] {
            assert_eq!(parse(template).unwrap_err(), error, "{template}");
        }
        assert_eq!(
            parse("note://{title").unwrap_err().to_string(),
            "uri template: the `{` at byte 7 is not closed; add a `}`"
        );
    }
}
