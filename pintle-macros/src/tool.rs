use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, Error, Ident, ItemFn, Result, ReturnType, Signature, Type, ext::IdentExt, spanned::Spanned,
};

use crate::{docs, options::Options, params::Params};

/// `#[tool]` on a function: the function, and beside it a type of the same name that knows its route.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(error.span(), "`#[tool]` goes on a function: `async fn name(..) -> ..`")
    })?;
    let options = Options::parse(options)?;
    let params = Params::take(&mut function.sig)?;
    if let Some(receiver) = &params.receiver {
        return Err(Error::new(
            receiver.span(),
            "a method becomes a tool by its `impl` block: put `#[pintle::handlers]` on that, and `#[tool]` on the method",
        ));
    }
    let name = &function.sig.ident;
    let route = route(&function.sig, &function.attrs, &options, &params, &quote!(#name))?;
    let (visibility, cfgs) = (&function.vis, cfgs(&function.attrs));
    Ok(quote! {
        #function

        #(#cfgs)*
        #[doc(hidden)]
        #[allow(
            dead_code, missing_debug_implementations, non_camel_case_types, unnameable_types, unreachable_pub,
            clippy::exhaustive_structs
        )]
        #visibility struct #name {}

        #(#cfgs)*
        #[doc(hidden)]
        impl ::pintle::server::Declared for #name {
            fn route() -> ::pintle::server::ToolRoute { #route }
        }
    })
}

/// What one would write by hand: the struct of the arguments, and `tool(name, handler)` with what is said of it.
///
/// `function` is how to call it, of a method with its receiver.
pub(crate) fn route(
    signature: &Signature,
    attrs: &[Attribute],
    options: &Options,
    params: &Params,
    function: &TokenStream,
) -> Result<TokenStream> {
    concrete(signature)?;
    params.agree()?;
    let ident = &signature.ident;
    let own_name = ident.unraw().to_string();
    let name = options.name.as_ref().map_or_else(|| quote!(#own_name), ToTokens::to_token_stream);
    let description = match (&options.description, docs::text(attrs)) {
        (Some(text), _) => quote!(.description(#text)),
        (None, Some(text)) => quote!(.description(#text)),
        (None, None) => TokenStream::new(),
    };
    let (declaration, closure, passed) = (params.declaration(ident), params.closure(), &params.passed);
    let checked = checked_result(&signature.output);
    let waited = signature.asyncness.map(|_| quote!(.await));
    let this = params.receiver.as_ref().map(|_| {
        let this = this();
        quote!(let #this = ::std::sync::Arc::clone(&#this);)
    });
    let calls = &options.calls;
    // What is wrong with the future is said at the function's name.
    let handler = quote_spanned!(ident.span()=> move |#closure| { #this async move { #function(#(#passed),*) #waited } });
    Ok(quote! {
        #declaration
        #checked
        ::pintle::server::tool(#name, #handler) #description #calls
    })
}

/// The value whose methods are called.
pub(crate) fn this() -> Ident {
    Ident::new("this", Span::mixed_site())
}

/// Attributes that decide whether the function is there at all.
fn cfgs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect()
}

fn concrete(signature: &Signature) -> Result<()> {
    match signature.generics.params.first() {
        Some(param) => {
            Err(Error::new(param.span(), "a tool has one schema: name the type instead of a parameter"))
        }
        None => Ok(()),
    }
}

/// Asks about the result by itself: the error then stands at its type.
fn checked_result(output: &ReturnType) -> Option<TokenStream> {
    let ReturnType::Type(_, ty) = output else { return None };
    let nameable = !matches!(**ty, Type::ImplTrait(_) | Type::Never(_));
    nameable.then(|| quote_spanned!(ty.span()=> let _ = ::pintle::__private::gives::<#ty>;))
}
