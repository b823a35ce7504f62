use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, LitStr, Result, Type, ext::IdentExt, meta::ParseNestedMeta,
    spanned::Spanned as _,
};

/// The keys of `#[arg(..)]` and the members of the schema that they set.
const MEMBERS: &[(&str, &str)] = &[
    ("title", "title"),
    ("examples", "examples"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("exclusive_minimum", "exclusiveMinimum"),
    ("exclusive_maximum", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("pattern", "pattern"),
    ("format", "format"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("unique_items", "uniqueItems"),
];

/// The parsed `#[arg(..)]` of a parameter.
#[derive(Default)]
pub(crate) struct Arg {
    /// The attributes of the field.
    pub(crate) attrs: TokenStream,
    /// The function that returns the default, if there is one.
    pub(crate) default: TokenStream,
    pub(crate) has_default: bool,
    pub(crate) described: bool,
    /// The name on the wire, if it differs.
    pub(crate) rename: Option<LitStr>,
    /// The completer of its values.
    pub(crate) complete: Option<Expr>,
}

impl Arg {
    pub(crate) fn parse<'a>(
        name: &Ident,
        ty: &Type,
        attrs: impl Iterator<Item = &'a Attribute>,
    ) -> Result<Self> {
        let mut arg = Self::default();
        for attr in attrs {
            attr.parse_nested_meta(|meta| arg.read(name, ty, &meta))?;
        }
        Ok(arg)
    }

    fn read(&mut self, name: &Ident, ty: &Type, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        self.has_default |= word == "default";
        let attr = match &*word {
            "default" if !meta.input.peek(syn::Token![=]) => quote!(#[serde(default)]),
            "default" => {
                let value: Expr = meta.value()?.parse()?;
                let function = format_ident!("default_of_{}", name.unraw());
                let path = function.to_string();
                let value = match is_text(&value) {
                    true => quote_spanned!(value.span()=> ::pintle::__private::text_default::<#ty>(#value)),
                    false => quote!(#value),
                };
                self.default = quote!(fn #function() -> #ty { #value });
                quote!(#[serde(default = #path)])
            }
            "description" => {
                let text: Expr = meta.value()?.parse()?;
                self.described = true;
                quote!(#[schemars(description = #text)])
            }
            "rename" => {
                self.rename = Some(meta.value()?.parse()?);
                return Ok(());
            }
            "complete" => {
                self.complete = Some(meta.value()?.parse()?);
                return Ok(());
            }
            word => {
                let Some((_, member)) = MEMBERS.iter().find(|(known, _)| *known == word) else {
                    let known: Vec<_> = MEMBERS.iter().map(|(known, _)| format!("`{known}`")).collect();
                    let known = known.join(", ");
                    return Err(meta.error(format!(
                        "a parameter has no such option; there are `default`, `description`, `rename`, `complete`, {known}"
                    )));
                };
                let value: Expr = meta.value()?.parse()?;
                quote!(#[schemars(extend(#member = #value))])
            }
        };
        self.attrs.extend(attr);
        Ok(())
    }
}

/// Returns whether a value is a string literal, which has to be converted to a `String`.
fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
}
