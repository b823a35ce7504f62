use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Error, Ident, Path, Token,
    parse::{ParseStream, Parser},
};

/// Expands `tools![..]` or `routes![..]`. `route` is the type of an entry, and `declared` the function that returns it.
///
/// The route of a function is that of the type with its name. It is imported as `advice`, which the compiler's error for a function
/// without an attribute contains, with the position of the entry, to which the error points.
pub(crate) fn expand(
    list: TokenStream,
    route: &TokenStream,
    declared: &TokenStream,
    advice: &str,
) -> TokenStream {
    let paths = |input: ParseStream<'_>| input.parse_terminated(Path::parse_mod_style, Token![,]);
    let entries = match paths.parse2(list) {
        Ok(paths) => paths.into_iter(),
        Err(error) => return Error::into_compile_error(error),
    };
    let entries = entries.map(|path| {
        let position = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        let entry = Ident::new(advice, position);
        quote!({
            use #path as #entry;
            <#entry as ::pintle::__private::#declared
        })
    });
    quote!(::std::vec::Vec::<::pintle::server::#route>::from([#(#entries),*]))
}
