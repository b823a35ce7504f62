use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, LitStr, Result, Type, ext::IdentExt, meta::ParseNestedMeta,
    spanned::Spanned as _,
};

use crate::options::unknown_option;

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
                if let Some(write) = instead_of(&value, ty) {
                    let message = format!(
                        "the default of `{}` should be of type `{}`: write `#[arg(default = {write})]`",
                        name.unraw(),
                        quote!(#ty).to_string().replace(' ', ""),
                    );
                    return Err(syn::Error::new(value.span(), message));
                }
                let function = format_ident!("default_of_{}", name.unraw());
                let path = function.to_string();
                let value = match &value {
                    text if is_text(text) => {
                        quote_spanned!(value.span()=> ::pintle::__private::text_default::<#ty>(#value))
                    }
                    value if has_own_type(value) => {
                        quote_spanned!(value.span()=> ::pintle::__private::expression_default::<#ty, _>(#value))
                    }
                    value => quote!(#value),
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
                    let others = ["default", "description", "rename", "complete"].into_iter();
                    let known: Vec<_> = others.chain(MEMBERS.iter().map(|(known, _)| *known)).collect();
                    return Err(meta.error(unknown_option("parameter", word, &known)));
                };
                let value: Expr = meta.value()?.parse()?;
                quote!(#[schemars(extend(#member = #value))])
            }
        };
        self.attrs.extend(attr);
        Ok(())
    }
}

/// Returns what to write instead of a literal that cannot be a value of the type, as far as their spelling tells. The compiler
/// reports other mismatches.
fn instead_of(value: &Expr, ty: &Type) -> Option<String> {
    let literal = match value {
        Expr::Unary(negative) => &negative.expr,
        other => other,
    };
    let (Expr::Lit(literal), Type::Path(ty)) = (literal, ty) else { return None };
    let name = ty.path.segments.last()?.ident.to_string();
    let shown = quote!(#value).to_string().replace(' ', "");
    let is_integer_type = matches!(
        &*name,
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize"
    );
    match (&literal.lit, &*name) {
        (Lit::Str(_), _) => None,
        (_, "Option") => Some(format!("Some({shown})")),
        (_, "Vec") => Some(format!("vec![{shown}]")),
        (Lit::Int(_) | Lit::Float(_) | Lit::Bool(_), "String") => Some(format!("\"{shown}\"")),
        (Lit::Char(character), "String") => Some(format!("{:?}", character.value().to_string())),
        (Lit::Int(integer), "f32" | "f64") if integer.suffix().is_empty() => Some(format!("{shown}.0")),
        (Lit::Float(float), _) if is_integer_type => {
            Some(shown.split('.').next().unwrap_or(float.base10_digits()).to_owned())
        }
        (Lit::Int(_) | Lit::Float(_) | Lit::Char(_), "bool") => Some("true".to_owned()),
        (Lit::Bool(_) | Lit::Char(_), _) if is_integer_type => Some("1".to_owned()),
        _ => None,
    }
}

/// Returns whether the type of a value does not depend on what is expected, so that the compiler can be told what to report if it
/// is another one. It is not that of `Default::default()` or `"1".parse().unwrap()`.
fn has_own_type(value: &Expr) -> bool {
    match value {
        Expr::Lit(_) | Expr::Path(_) | Expr::Struct(_) | Expr::Array(_) | Expr::Tuple(_) => true,
        Expr::Unary(unary) => has_own_type(&unary.expr),
        Expr::Call(call) => match &*call.func {
            Expr::Path(function) => {
                let first = function.path.segments.first().map(|segment| segment.ident.to_string());
                function.qself.is_none()
                    && !matches!(
                        first.as_deref(),
                        Some("Default" | "From" | "FromStr" | "Into" | "std" | "core")
                    )
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether a value is a string literal, which has to be converted to a `String`.
fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
}
