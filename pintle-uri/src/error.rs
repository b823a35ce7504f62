use std::{error::Error, fmt};

/// Why a URI template was refused.
///
/// Places are byte offsets into the template.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TemplateError {
    /// A `{` without its `}`.
    Unclosed {
        /// Where the `{` is.
        at: usize,
    },
    /// A `}` without its `{`.
    Unopened {
        /// Where the `}` is.
        at: usize,
    },
    /// An operator that RFC 6570 keeps for later.
    Operator {
        /// Where it is.
        at: usize,
        /// What it is.
        operator: char,
    },
    /// A variable's name that is empty or has a character that no name has.
    Name {
        /// Where the name starts.
        at: usize,
        /// The name as written.
        name: String,
    },
    /// A `:` without a number from 1 to 9999 after it.
    Prefix {
        /// Where the variable starts.
        at: usize,
        /// The variable's name.
        name: String,
    },
    /// A `%` without two hexadecimal digits after it.
    Percent {
        /// Where it is.
        at: usize,
    },
    /// Two variables with nothing between them that shows where the first ends.
    Adjacent {
        /// Where the second starts.
        at: usize,
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// A variable that appears twice: it would have two values.
    Duplicate {
        /// Where it appears the second time.
        at: usize,
        /// Its name.
        name: String,
    },
    /// A template that is too large to match in bounded time.
    TooLarge {
        /// How many bytes it has.
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
                "uri template: nothing shows where variable `{first}` ends and `{second}` at byte {at} starts; put \
                 a literal between them"
            ),
            Self::Duplicate { at, name } => {
                write!(f, "uri template: variable `{name}` appears again at byte {at}; give it another name")
            }
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "uri template: {bytes} bytes with these prefixes are too many to match in bounded time"
                )
            }
        }
    }
}

impl Error for TemplateError {}
