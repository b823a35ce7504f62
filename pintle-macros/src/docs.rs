use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of the doc comments; `None` if there are none.
pub(crate) fn text(attrs: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attrs.iter().filter_map(line).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns one line of `///`, without the leading space.
fn line(attr: &Attribute) -> Option<String> {
    let Meta::NameValue(doc) = &attr.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &doc.value else { return None };
    let text = text.value();
    doc.path.is_ident("doc").then(|| text.strip_prefix(' ').unwrap_or(&text).to_owned())
}
