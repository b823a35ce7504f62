use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, GenericArgument, PathArguments, PathSegment, Result, Type};

/// The kind of route that a function becomes.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// Types that cannot be parsed from a string. A macro sees only names; aliases are found when the server is checked.
const CONTAINERS: &[&str] = &["BTreeMap", "BTreeSet", "HashMap", "HashSet", "Vec", "VecDeque"];

impl Kind {
    /// Returns the kind for the last segment of an attribute's path.
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

    /// Returns the attribute as it is written.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "#[tool]",
            Self::Prompt => "#[prompt]",
            Self::Resource => "#[resource(\"..\")]",
        }
    }

    /// Returns a description of its parameters, for messages.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Self::Tool => "an argument of a tool",
            Self::Prompt => "an argument of a prompt",
            Self::Resource => "a variable of a resource",
        }
    }

    /// Returns the extractor of all parameters at once.
    pub(crate) fn whole(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "Args",
            Self::Resource => "Vars",
        }
    }

    /// Returns the extractors that only other kinds support.
    pub(crate) fn strangers(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &["Vars", "PromptArguments"],
            Self::Prompt => &["Vars"],
            Self::Resource => &["Args", "Arguments", "PromptArguments"],
        }
    }

    /// Returns the functions that check the type of a parameter and of the result, and the method that returns the result.
    pub(crate) fn checks(self) -> (TokenStream, TokenStream, TokenStream) {
        match self {
            Self::Tool => (quote!(takes), quote!(gives), quote!(tool_result)),
            Self::Prompt => (quote!(takes_text), quote!(gives_prompt), quote!(prompt_result)),
            Self::Resource => (quote!(takes_text), quote!(gives_resource), quote!(resource_result)),
        }
    }

    /// Returns the traits whose methods a result may have.
    pub(crate) fn result_traits(self) -> TokenStream {
        match self {
            Self::Tool => quote!(Give as _, CannotGive as _),
            Self::Prompt => quote!(GivePrompt as _, CannotGivePrompt as _),
            Self::Resource => quote!(GiveResource as _, CannotGiveResource as _),
        }
    }

    /// Returns the methods that describe and extract all parameters at once.
    pub(crate) fn extraction(self) -> (TokenStream, TokenStream) {
        match self {
            Self::Tool | Self::Prompt => (quote!(describe_args), quote!(args)),
            Self::Resource => (quote!(describe_vars), quote!(vars)),
        }
    }

    /// Checks that a parameter can have this type: it must be owned, and a string is not a list.
    pub(crate) fn admits(self, ty: &Type) -> Result<()> {
        let what = self.parameter();
        let message = match ty {
            Type::Reference(reference) if is(&reference.elem, "str") => {
                format!("{what} must be owned: use a `String`")
            }
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(_) => format!("{what} must be owned: use a `Vec<T>`"),
                _ => format!("{what} must be owned: remove the `&`"),
            },
            Type::ImplTrait(_) => format!("{what} must have a concrete type: name it instead of `impl`"),
            _ if is_shared(ty) => format!(
                "{what} is sent by the client and cannot share state: write `State(name): State<T>`, and `Server::with_state`"
            ),
            _ if self == Self::Prompt && holds_many(ty) => format!(
                "{what} is a single string: use a `String`, a number, a `bool`, an enum, or an `Option` of one"
            ),
            _ => return Ok(()),
        };
        Err(Error::new_spanned(ty, message))
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

/// Returns whether values of the type are shared, or can be changed through a reference. An `Arc<str>` is only text.
fn is_shared(ty: &Type) -> bool {
    let Some(PathSegment { ident, .. }) = last(ty) else { return false };
    match ident.to_string().as_str() {
        "Arc" | "Rc" => !inner(ty).any(|inner| is(inner, "str")),
        "Cell" | "Mutex" | "OnceCell" | "OnceLock" | "RefCell" | "RwLock" => true,
        name => name.starts_with("Atomic") || inner(ty).any(is_shared),
    }
}

/// Returns whether the type's path ends in this name.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    last(ty).is_some_and(|segment| segment.ident == name)
}

/// Returns whether it also has type parameters: `uri::Vars` is not `Vars<T>`.
pub(crate) fn is_typed(ty: &Type, name: &str) -> bool {
    is(ty, name) && last(ty).is_some_and(|segment| !segment.arguments.is_none())
}

/// Returns the type inside an `Option`.
pub(crate) fn optional(ty: &Type) -> Option<&Type> {
    inner(ty).next().filter(|_| is(ty, "Option"))
}

/// Returns the type arguments of a type.
fn inner(ty: &Type) -> impl Iterator<Item = &Type> {
    let arguments = match last(ty).map(|segment| &segment.arguments) {
        Some(PathArguments::AngleBracketed(inner)) => Some(&inner.args),
        _ => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    })
}

fn last(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}
