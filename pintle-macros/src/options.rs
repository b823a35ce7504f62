use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Error, Expr, LitBool, LitStr, Result, Token,
    meta::ParseNestedMeta,
    parse::{ParseStream, Parser},
    spanned::Spanned as _,
};

use crate::{kind::Kind, uri::Uri};

/// Returns the options whose value is passed on unchanged.
fn given(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Tool => &["title", "icon", "timeout", "annotations", "task"],
        Kind::Prompt => &["title", "icon", "timeout"],
        Kind::Resource => &["title", "icon", "timeout", "mime_type", "annotations", "cache"],
    }
}

fn known(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => {
            "`name`, `title`, `description`, `icon`, `read_only`, `destructive = bool`, `idempotent`, `open_world = bool`, `annotations`, `strict`, `task`, `resumable`, `timeout`, `inline`, `requires(..)`, `hidden`"
        }
        Kind::Prompt => {
            "`name`, `title`, `description`, `icon`, `timeout`, `inline`, `requires(..)`, `hidden`"
        }
        Kind::Resource => {
            "`name`, `title`, `description`, `icon`, `mime_type`, `annotations`, `cache`, `timeout`, `inline`, `requires(..)`, `hidden`, all behind the URI"
        }
    }
}

/// The parsed options of `#[tool(..)]`, `#[prompt(..)]` or `#[resource("..", ..)]`.
#[derive(Default)]
pub(crate) struct Options {
    /// The URI of a resource.
    pub(crate) uri: Option<Uri>,
    pub(crate) name: Option<Expr>,
    pub(crate) description: Option<Expr>,
    /// Where a synchronous function is said to run in place, without a thread.
    pub(crate) inline: Option<Span>,
    /// Builder calls for all other options.
    pub(crate) calls: TokenStream,
}

impl Options {
    pub(crate) fn parse(kind: Kind, tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = tokens;
        if kind == Kind::Resource {
            rest = (|input: ParseStream<'_>| options.read_uri(input)).parse2(rest)?;
        }
        syn::meta::parser(|meta| options.read(kind, &meta)).parse2(rest)?;
        Ok(options)
    }

    /// Parses the URI, which comes first and has no key.
    fn read_uri(&mut self, input: ParseStream<'_>) -> Result<TokenStream> {
        if !input.peek(LitStr) {
            let message = "a resource needs its URI first: `#[resource(\"notes://{id}\")]`";
            return Err(Error::new(input.span(), message));
        }
        self.uri = Some(Uri::parse(input.parse()?)?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        input.parse()
    }

    fn read(&mut self, kind: Kind, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let method = &meta.path;
        match &*word {
            "name" => self.name = Some(meta.value()?.parse()?),
            "description" => self.description = Some(meta.value()?.parse()?),
            word if given(kind).contains(&word) => {
                let value: Expr = meta.value()?.parse()?;
                self.calls.extend(quote!(.#method(#value)));
            }
            "inline" => self.inline = Some(meta.path.span()),
            "read_only" | "idempotent" | "strict" | "resumable" if kind == Kind::Tool => {
                if meta.input.peek(Token![=]) {
                    return Err(meta.error(format!("write `{word}`, or omit it")));
                }
                self.calls.extend(quote!(.#method()));
            }
            "hidden" => self.calls.extend(quote!(.#method())),
            "requires" => {
                let rights;
                syn::parenthesized!(rights in meta.input);
                let rights = rights.parse_terminated(<Expr as syn::parse::Parse>::parse, Token![,])?;
                let rights = rights.iter();
                self.calls.extend(quote!(.#method([#(#rights),*])));
            }
            "destructive" | "open_world" if kind == Kind::Tool => {
                let yes = yes(meta)?;
                self.calls.extend(quote!(.#method(#yes)));
            }
            _ => {
                let (kind, known) = (kind.word(), known(kind));
                return Err(meta.error(format!("a {kind} has no such option; there are {known}")));
            }
        }
        Ok(())
    }
}

/// Parses a flag: a key without a value means `true`.
fn yes(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    if meta.input.peek(Token![=]) {
        return Ok(meta.value()?.parse::<LitBool>()?.value);
    }
    Ok(true)
}
