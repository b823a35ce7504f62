use std::{error::Error, fmt};

/// The error for an invalid URI template.
///
/// Positions are byte offsets into the template.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TemplateError {
    /// A `{` without its `}`.
    Unclosed {
        /// The position of the `{`.
        at: usize,
    },
    /// A `}` without its `{`.
    Unopened {
        /// The position of the `}`.
        at: usize,
    },
    /// An operator that RFC 6570 reserves.
    Operator {
        /// The position.
        at: usize,
        /// The operator.
        operator: char,
    },
    /// A variable name that is empty or contains an invalid character.
    Name {
        /// The position of the name.
        at: usize,
        /// The name as written.
        name: String,
    },
    /// A `:` that is not followed by a number from 1 to 9999.
    Prefix {
        /// The position of the variable.
        at: usize,
        /// The variable's name.
        name: String,
    },
    /// A `%` that is not followed by two hexadecimal digits.
    Percent {
        /// The position.
        at: usize,
    },
    /// Two adjacent variables, with no separator that ends the first.
    Adjacent {
        /// The position of the second variable.
        at: usize,
        /// The first variable.
        first: String,
        /// The second variable.
        second: String,
    },
    /// A variable that occurs twice.
    Duplicate {
        /// The position of the second occurrence.
        at: usize,
        /// The name of the variable.
        name: String,
    },
    /// A template that is too large to match in bounded time.
    TooLarge {
        /// The length of the template.
        bytes: usize,
    },
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed { at } => {
                write!(f, "uri template: the `{{` at byte {at} is not closed; add a `}}`")
            }
            Self::Unopened { at } => {
                write!(f, "uri template: the `}}` at byte {at} closes nothing; write `%7D` for the character")
            }
            Self::Operator { at, operator } => {
                write!(f, "uri template: operator `{operator}` at byte {at} is reserved by RFC 6570")
            }
            Self::Name { at, name } => write!(
                f,
                "uri template: `{name}` at byte {at} is not a variable name; use letters, digits, `_` and single `.`"
            ),
            Self::Prefix { at, name } => {
                write!(f, "uri template: prefix of variable `{name}` at byte {at} must be from 1 to 9999")
            }
            Self::Percent { at } => {
                write!(
                    f,
                    "uri template: `%` at byte {at} needs two hexadecimal digits; write `%25` for the character"
                )
            }
            Self::Adjacent { at, first, second } => write!(
                f,
                "uri template: variables `{first}` and `{second}` at byte {at} are adjacent; put a literal between \
                 them"
            ),
            Self::Duplicate { at, name } => {
                write!(f, "uri template: variable `{name}` occurs again at byte {at}; use another name")
            }
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "uri template: {bytes} bytes with these prefixes are too large to match; shorten the template"
                )
            }
        }
    }
}

impl Error for TemplateError {}
