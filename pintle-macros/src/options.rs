use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, LitBool, Result, meta::ParseNestedMeta, parse::Parser};

const KNOWN: &str =
    "`name`, `title`, `description`, `read_only`, `destructive = bool`, `idempotent`, `open_world = bool`";

/// What stands in `#[tool(..)]`.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<Expr>,
    pub(crate) description: Option<Expr>,
    /// Calls on the route for all the others.
    pub(crate) calls: TokenStream,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.read(&meta)).parse2(tokens)?;
        Ok(options)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match &*word {
            "name" => self.name = Some(meta.value()?.parse()?),
            "description" => self.description = Some(meta.value()?.parse()?),
            "title" => {
                let title: Expr = meta.value()?.parse()?;
                self.calls.extend(quote!(.title(#title)));
            }
            "read_only" | "idempotent" => {
                if meta.input.peek(syn::Token![=]) {
                    return Err(meta.error(format!("write `{word}`, or nothing if it is not")));
                }
                let method = &meta.path;
                self.calls.extend(quote!(.#method()));
            }
            "destructive" | "open_world" => {
                let (method, yes) = (&meta.path, yes(meta)?);
                self.calls.extend(quote!(.#method(#yes)));
            }
            _ => return Err(meta.error(format!("a tool has no such option; there are {KNOWN}"))),
        }
        Ok(())
    }
}

/// A word by itself says yes.
fn yes(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    if meta.input.peek(syn::Token![=]) {
        return Ok(meta.value()?.parse::<LitBool>()?.value);
    }
    Ok(true)
}
