use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Error, Ident, ItemFn, Result, ReturnType, Signature, ext::IdentExt, spanned::Spanned};

use crate::{docs, kind::Kind, options::Options, params::Params};

/// Expands `#[tool]`, `#[prompt]` or `#[resource]` on a function: the function, and a type of the same name with its route.
///
/// An error replaces the route, so that the compiler reports nothing else.
pub(crate) fn expand(kind: Kind, options: TokenStream, item: &TokenStream) -> TokenStream {
    let (word, attribute) = (kind.word(), kind.attribute());
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let message = format!("`{attribute}` goes on a function: `async fn name(..) -> ..`");
        let error = Error::new_spanned(item, message).into_compile_error();
        return quote!(#item #error);
    };
    if let Some(receiver) = function.sig.receiver().cloned() {
        let message = format!(
            "a method becomes a {word} by its `impl` block: put `#[pintle::handlers]` on that, and `{attribute}` on the method"
        );
        let error = Error::new_spanned(receiver, message).into_compile_error();
        // The attributes of parameters have to be removed to make it a valid method.
        let _ = Params::take(kind, &mut function.sig);
        return quote!(#function #error);
    }
    let name = function.sig.ident.clone();
    let params = Params::take(kind, &mut function.sig);
    let options = Options::parse(kind, options);
    let ty = route_type(kind, &options);
    let route = options
        .and_then(|options| route(kind, &function.sig, &function.attrs, &options, params?, &quote!(#name)))
        .unwrap_or_else(Error::into_compile_error);
    let (visibility, cfgs) = (&function.vis, cfgs(&function.attrs));
    // Parameters are extracted, so they are values even if the function only reads them.
    let by_value = function.sig.asyncness.is_none().then(|| quote!(#[allow(clippy::needless_pass_by_value)]));
    quote! {
        #by_value
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
            type Route = ::pintle::server::#ty;

            fn route() -> Self::Route { #route }
        }
    }
}

/// Returns the type of the expression that [`route`] returns.
fn route_type(kind: Kind, options: &Result<Options>) -> TokenStream {
    let uri = options.as_ref().ok().and_then(|options| options.uri.as_ref());
    match kind {
        Kind::Tool => quote!(ToolRoute),
        Kind::Prompt => quote!(PromptRoute),
        Kind::Resource if uri.is_some_and(|uri| uri.is_template()) => quote!(TemplateRoute),
        Kind::Resource => quote!(ResourceRoute),
    }
}

/// Returns the code that one would write by hand: the struct of the arguments, and `tool(name, handler)` with its options.
///
/// `function` is the path of the function, or the method with its receiver.
pub(crate) fn route(
    kind: Kind,
    signature: &Signature,
    attrs: &[Attribute],
    options: &Options,
    mut params: Params,
    function: &TokenStream,
) -> Result<TokenStream> {
    concrete(kind, signature)?;
    params.agree()?;
    if let Some(uri) = &options.uri {
        params.bind(uri)?;
    }
    let ident = &signature.ident;
    let own_name = ident.unraw().to_string();
    let name = options.name.as_ref().map_or_else(|| quote!(#own_name), ToTokens::to_token_stream);
    let (maker, uri) = match &options.uri {
        Some(uri) if uri.is_template() => (quote!(template), Some(&uri.text)),
        Some(uri) => (quote!(resource), Some(&uri.text)),
        None if kind == Kind::Prompt => (quote!(prompt), None),
        None => (quote!(tool), None),
    };
    let uri = uri.into_iter();
    let description = match (&options.description, docs::text(attrs)) {
        (Some(text), _) => quote!(.description(#text)),
        (None, Some(text)) => quote!(.description(#text)),
        (None, None) => TokenStream::new(),
    };
    let (declaration, closure, passed) = (params.declaration(ident), params.closure(), &params.passed);
    let this = params.receiver.as_ref().map(|_| {
        let this = this();
        quote!(let #this = ::std::sync::Arc::clone(&#this);)
    });
    let call = quote_spanned!(ident.span()=> #function(#(#passed),*));
    let result = result(signature);
    let (_, gives, give) = kind.checks();
    let traits = kind.result_traits();
    let check = quote_spanned!(result.span()=> ::pintle::__private::#gives(&#result););
    let given = quote! {
        #[allow(unused_imports)]
        use ::pintle::__private::{#traits};
        #check
        ::pintle::__private::Given(#result).#give()
    };
    let handler = match (signature.asyncness, options.inline) {
        (Some(_), Some(inline)) => {
            let message = "an `async fn` needs no `inline`: remove it";
            return Err(Error::new(inline, message));
        }
        (Some(_), None) => {
            let awaited = quote_spanned!(ident.span()=> ::pintle::__private::must_be_send(#call).await);
            quote! {move |#closure| {
                #this
                async move {
                    let #result = #awaited;
                    #given
                }
            }}
        }
        (None, Some(_)) => quote! {move |#closure| {
            #this
            async move {
                let #result = #call;
                #given
            }
        }},
        (None, None) => quote! {::pintle::server::blocking(move |#closure| {
            #this
            let #result = #call;
            #given
        })},
    };
    let (calls, completers) = (&options.calls, params.completers());
    Ok(quote! {
        #declaration
        ::pintle::server::#maker(#(#uri,)* #name, #handler) #description #calls #completers
    })
}

/// Returns the name of the value whose methods are called.
pub(crate) fn this() -> Ident {
    Ident::new("this", Span::mixed_site())
}

/// Returns the `cfg` attributes of the function.
fn cfgs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect()
}

fn concrete(kind: Kind, signature: &Signature) -> Result<()> {
    match signature.generics.params.first() {
        Some(param) => {
            let message =
                format!("a {} cannot be generic: name the type instead of a type parameter", kind.word());
            Err(Error::new_spanned(param, message))
        }
        None => Ok(()),
    }
}

/// Returns a name for the result with the span of its type, so that errors are reported there.
fn result(signature: &Signature) -> Ident {
    let place = match &signature.output {
        ReturnType::Type(_, ty) => ty.span(),
        ReturnType::Default => signature.ident.span(),
    };
    Ident::new("result", Span::mixed_site().located_at(place))
}
