//! Items that the expansion of the attributes uses. Not part of the public API: they may change in any version.

pub use schemars;
pub use serde;

use std::{future::Future, marker::PhantomData};

use pintle_proto::server::Outcome;
use pintle_types::RpcError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::server::{
    Args, Cx, Declared, Description, FromCall, IntoPromptResult, IntoResourceResult, IntoToolResult, Route,
    TextArgument, ToolArgument, ToolRoute, Vars,
};

/// Reports an unsuitable parameter type at that type.
pub fn takes<T: ToolArgument>() {}

/// Reports an unsuitable type of a parameter that is parsed from a string.
pub fn takes_text<T: TextArgument>() {}

/// The struct of the arguments, whose fields may have unsuitable types. These are reported by [`takes`], once: a method of a
/// `Probe` is that of [`Extract`] if they are suitable, and else that of [`CannotExtract`], which compiles for every type.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    #[expect(clippy::new_without_default, reason = "for generated code only")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

/// Extracts the arguments of a call.
pub trait Extract<T> {
    fn describe_args(&self, description: &mut Description<'_>);
    fn describe_vars(&self, description: &mut Description<'_>);
    fn args(&self, cx: &Cx) -> Result<T, Outcome>;
    fn vars(&self, cx: &Cx) -> Result<T, Outcome>;
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Extract<T> for Probe<T> {
    fn describe_args(&self, description: &mut Description<'_>) {
        Args::<T>::describe(description);
    }

    fn describe_vars(&self, description: &mut Description<'_>) {
        Vars::<T>::describe(description);
    }

    fn args(&self, cx: &Cx) -> Result<T, Outcome> {
        Args::from_call(cx).map(|Args(arguments)| arguments)
    }

    fn vars(&self, cx: &Cx) -> Result<T, Outcome> {
        Vars::from_call(cx).map(|Vars(variables)| variables)
    }
}

/// Stands in for [`Extract`] in code that does not compile anyway.
pub trait CannotExtract<T> {
    fn describe_args(&self, _: &mut Description<'_>) {}

    fn describe_vars(&self, _: &mut Description<'_>) {}

    fn args(&self, _: &Cx) -> Result<T, Outcome> {
        Err(Outcome::Failed(RpcError::internal("the arguments cannot be extracted")))
    }

    fn vars(&self, cx: &Cx) -> Result<T, Outcome> {
        self.args(cx)
    }
}

impl<T> CannotExtract<T> for &Probe<T> {}

/// A function with `#[pintle::tool]`.
#[diagnostic::on_unimplemented(
    message = "this is a prompt or a resource and not a tool: write `.routes(pintle::routes![..])` in place of `.tools(pintle::tools![..])`",
    label = "not a tool"
)]
pub trait DeclaredTool {
    fn tool() -> ToolRoute;
}

#[diagnostic::do_not_recommend]
impl<T: Declared<Route = ToolRoute>> DeclaredTool for T {
    fn tool() -> ToolRoute {
        T::route()
    }
}

/// A function with `#[pintle::tool]`, `#[pintle::prompt]` or `#[pintle::resource]`.
pub trait DeclaredRoute {
    fn route() -> Route;
}

impl<T: Declared> DeclaredRoute for T {
    fn route() -> Route {
        T::route().into()
    }
}

/// A type whose default can be written as a text.
#[diagnostic::on_unimplemented(
    message = "a text cannot be the default of `{Self}`: write a value of that type, as in `#[arg(default = 1)]`",
    label = "should be a `{Self}`"
)]
pub trait TextDefault {
    fn from_text(text: &'static str) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: From<&'static str>> TextDefault for T {
    fn from_text(text: &'static str) -> Self {
        text.into()
    }
}

/// Returns the default of a parameter that was written as a text.
pub fn text_default<T: TextDefault>(text: &'static str) -> T {
    T::from_text(text)
}

/// A value that can be the default of a parameter of the type `T`.
#[diagnostic::on_unimplemented(
    message = "the default should be of type `{T}`, and is of type `{Self}`: write a value of type `{T}`",
    label = "should be of type `{T}`"
)]
pub trait DefaultOf<T> {
    fn value(self) -> T;
}

#[diagnostic::do_not_recommend]
impl<T> DefaultOf<T> for T {
    fn value(self) -> T {
        self
    }
}

/// Returns the default of a parameter that was written as an expression.
pub fn expression_default<T, V: DefaultOf<T>>(value: V) -> T {
    value.value()
}

/// Reports a future that is not `Send` at its function. The returned type is always `Send`, so no further error follows.
pub fn must_be_send<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    // The compiler shows this line, and with it what to write.
    F: Future + Send, // use `Arc` for `Rc`, a lock for `RefCell`, and drop guards before `.await`
{
    future
}

/// Reports an unsuitable result type of a tool at that type.
pub fn gives<R: IntoToolResult>(_: &R) {}

/// Reports an unsuitable result type of a prompt at that type.
pub fn gives_prompt<R: IntoPromptResult>(_: &R) {}

/// Reports an unsuitable result type of a resource at that type.
pub fn gives_resource<R: IntoResourceResult>(_: &R) {}

/// The result of a function, which may be unsuitable. That is reported by [`gives`], once: the methods of a `Given` are those
/// of [`Give`] if the result is suitable, and else those of [`CannotGive`], which compile for every type.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the attributes construct it")]
pub struct Given<R>(pub R);

macro_rules! results {
    ($($give:ident $cannot:ident $method:ident $bound:ident)*) => {$(
        pub trait $give {
            type Result;

            fn $method(self) -> Self::Result;
        }

        impl<R: $bound> $give for Given<R> {
            type Result = R;

            fn $method(self) -> R {
                self.0
            }
        }

        /// Stands in in code that does not compile anyway.
        pub trait $cannot {
            fn $method(self) -> &'static str;
        }

        impl<R> $cannot for &Given<R> {
            fn $method(self) -> &'static str {
                ""
            }
        }
    )*};
}

results! {
    Give CannotGive tool_result IntoToolResult
    GivePrompt CannotGivePrompt prompt_result IntoPromptResult
    GiveResource CannotGiveResource resource_result IntoResourceResult
}
