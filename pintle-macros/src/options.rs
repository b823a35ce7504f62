use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Error, Expr, LitBool, LitStr, Result, Token, Type,
    meta::ParseNestedMeta,
    parse::{Parse, ParseStream, Parser},
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

/// Returns all options, as they are written.
fn known(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Tool => &[
            "name",
            "title",
            "description",
            "icon",
            "read_only",
            "destructive = bool",
            "idempotent",
            "open_world = bool",
            "annotations",
            "strict",
            "task",
            "resumable",
            "timeout",
            "inline",
            "asks(..)",
            "requires(..)",
            "hidden",
        ],
        Kind::Prompt => &[
            "name",
            "title",
            "description",
            "icon",
            "timeout",
            "inline",
            "asks(..)",
            "requires(..)",
            "hidden",
        ],
        Kind::Resource => &[
            "name",
            "title",
            "description",
            "icon",
            "mime_type",
            "annotations",
            "cache",
            "timeout",
            "inline",
            "asks(..)",
            "requires(..)",
            "hidden",
        ],
    }
}

/// Returns the message for an option that does not exist: the one that was perhaps meant, and all that there are.
pub(crate) fn unknown_option(of: &str, word: &str, known: &[&str]) -> String {
    let name = |option: &str| option.split([' ', '(']).next().unwrap_or_default().to_owned();
    let meant = known.iter().map(|option| name(option)).find(|option| resembles(option, word));
    let meant = meant.map(|option| format!("; did you mean `{option}`?")).unwrap_or_default();
    let after = if of == "resource" { ", all after the URI" } else { "" };
    format!("a {of} has no option `{word}`{meant}; there are `{}`{after}", known.join("`, `"))
}

/// Returns whether a word is another one with one letter added, left out or replaced, or with other underscores and capitals.
fn resembles(option: &str, word: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('_', "").into_bytes();
    let (option, word) = (plain(option), plain(word));
    let same = option.iter().zip(&word).take_while(|(one, other)| one == other).count();
    let (option, word) = (&option[same..], &word[same..]);
    let rest = |text: &[u8]| text.get(1..).unwrap_or_default().to_vec();
    rest(option) == rest(word) || rest(option) == word || option == rest(word)
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
                let rights = listed::<Expr>(meta)?;
                self.calls.extend(quote!(.#method([#(#rights),*])));
            }
            "asks" => {
                let forms = listed::<Type>(meta)?;
                self.calls.extend(quote!(#(.#method::<#forms>())*));
            }
            "destructive" | "open_world" if kind == Kind::Tool => {
                let yes = yes(meta)?;
                self.calls.extend(quote!(.#method(#yes)));
            }
            _ => {
                return Err(meta.error(unknown_option(kind.word(), &word, known(kind))));
            }
        }
        Ok(())
    }
}

/// Parses a list in parentheses.
fn listed<T: Parse>(meta: &ParseNestedMeta<'_>) -> Result<Vec<T>> {
    let list;
    syn::parenthesized!(list in meta.input);
    Ok(list.parse_terminated(T::parse, Token![,])?.into_iter().collect())
}

/// Parses a flag: a key without a value means `true`.
fn yes(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    if meta.input.peek(Token![=]) {
        return Ok(meta.value()?.parse::<LitBool>()?.value);
    }
    Ok(true)
}
