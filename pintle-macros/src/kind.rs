use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, GenericArgument, PathArguments, PathSegment, Result, Type};

/// What a function becomes.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// Types that no text is read into. A macro sees names only; what they hide is found when the server is checked.
const CONTAINERS: &[&str] = &["BTreeMap", "BTreeSet", "HashMap", "HashSet", "Vec", "VecDeque"];

impl Kind {
    /// What the last word of an attribute's path says.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Tool, Self::Prompt, Self::Resource].into_iter().find(|kind| kind.word() == name)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// What to write above a function.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "#[tool]",
            Self::Prompt => "#[prompt]",
            Self::Resource => "#[resource(\"..\")]",
        }
    }

    /// What a parameter is to it.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Self::Tool => "an argument of a tool",
            Self::Prompt => "an argument of a prompt",
            Self::Resource => "a variable of a resource",
        }
    }

    /// The extractor that takes all parameters at once.
    pub(crate) fn whole(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "Args",
            Self::Resource => "Vars",
        }
    }

    /// Extractors of other kinds, that this one has nothing for.
    pub(crate) fn strangers(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &["Vars", "PromptArguments"],
            Self::Prompt => &["Vars"],
            Self::Resource => &["Args", "Arguments", "PromptArguments"],
        }
    }

    /// The functions that say what is wrong with a parameter's type and with the result.
    pub(crate) fn checks(self) -> (TokenStream, TokenStream) {
        match self {
            Self::Tool => (quote!(takes), quote!(gives)),
            Self::Prompt => (quote!(takes_text), quote!(gives_prompt)),
            Self::Resource => (quote!(takes_text), quote!(gives_resource)),
        }
    }

    /// That a parameter can have this type: it outlives the message it came in, and what comes as text is no list.
    pub(crate) fn admits(self, ty: &Type) -> Result<()> {
        let what = self.parameter();
        let said = match ty {
            Type::Reference(reference) if is(&reference.elem, "str") => {
                format!("{what} is its own: take a `String`")
            }
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(_) => format!("{what} is its own: take a `Vec<T>`"),
                _ => format!("{what} is its own: take it without `&`"),
            },
            Type::ImplTrait(_) => format!("{what} has one type: name it instead of `impl`"),
            _ if self == Self::Prompt && holds_many(ty) => format!(
                "{what} is one text: take a `String`, a number, a `bool`, an enum, or an `Option` of one"
            ),
            _ => return Ok(()),
        };
        Err(Error::new_spanned(ty, said))
    }
}

fn holds_many(ty: &Type) -> bool {
    match ty {
        Type::Tuple(_) | Type::Array(_) => true,
        _ => match optional(ty) {
            Some(inner) => holds_many(inner),
            None => CONTAINERS.iter().any(|name| is(ty, name)),
        },
    }
}

/// Whether the type's path ends in this name.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    last(ty).is_some_and(|segment| segment.ident == name)
}

/// Whether it also has parameters: `uri::Vars` is no `Vars<T>`.
pub(crate) fn is_typed(ty: &Type, name: &str) -> bool {
    is(ty, name) && last(ty).is_some_and(|segment| !segment.arguments.is_none())
}

/// What is in an `Option`.
pub(crate) fn optional(ty: &Type) -> Option<&Type> {
    let PathArguments::AngleBracketed(inner) = &last(ty).filter(|last| last.ident == "Option")?.arguments
    else {
        return None;
    };
    match inner.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

fn last(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}
