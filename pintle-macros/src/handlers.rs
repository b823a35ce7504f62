use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Receiver, ReceiverKind, Result, Type};

use crate::{
    kind::{Kind, is},
    options::Options,
    params::Params,
    route::{self, this},
};

/// Expands `#[handlers]` on an `impl` block: the block, and functions that return the routes of its methods.
///
/// An error replaces its route, so that the compiler reports nothing else.
pub(crate) fn expand(options: &TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        let message = "`#[handlers]` goes on an `impl` block: `impl Notes { .. }`";
        let error = Error::new_spanned(item, message).into_compile_error();
        return quote!(#item #error);
    };
    let methods = block.items.iter_mut().filter_map(|item| match item {
        ImplItem::Fn(method) => take(method),
        _ => None,
    });
    let (kinds, routes): (Vec<_>, Vec<_>) =
        methods.map(|(kind, route)| (kind, route.unwrap_or_else(Error::into_compile_error))).unzip();
    let fault = fault(options, &block, &routes).map(Error::into_compile_error);
    let (generics, _, conditions) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    // With other kinds of routes, `into_tools` would omit some.
    let makers = if kinds.iter().all(|kind| *kind == Kind::Tool) { tools(&routes) } else { all(&routes) };
    quote! {
        #block
        #fault

        #[allow(dead_code)]
        impl #generics #ty #conditions {
            #makers

            /// Returns the tools, prompts and resources of these methods.
            pub fn into_routes(self) -> ::std::vec::Vec<::pintle::server::Route> {
                Self::routes(&::std::sync::Arc::new(self))
            }
        }
    }
}

fn tools(routes: &[TokenStream]) -> TokenStream {
    let this = this();
    quote! {
        /// Returns the tools of these methods.
        pub fn into_tools(self) -> ::std::vec::Vec<::pintle::server::ToolRoute> {
            Self::tools(&::std::sync::Arc::new(self))
        }

        /// Returns the tools of these methods for a shared value.
        pub fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::ToolRoute> {
            let #this = self;
            ::std::vec::Vec::from([#({ let #this = ::std::sync::Arc::clone(#this); #routes }),*])
        }

        /// Returns the tools of these methods for a shared value, as routes.
        pub fn routes(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::Route> {
            Self::tools(self).into_iter().map(::std::convert::Into::into).collect()
        }
    }
}

fn all(routes: &[TokenStream]) -> TokenStream {
    let this = this();
    quote! {
        /// Returns the tools, prompts and resources of these methods for a shared value.
        pub fn routes(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::Route> {
            let #this = self;
            ::std::vec::Vec::from([#({
                let #this = ::std::sync::Arc::clone(#this);
                ::std::convert::Into::into({ #routes })
            }),*])
        }
    }
}

/// Returns an error of the block as a whole.
fn fault(options: &TokenStream, block: &ItemImpl, routes: &[TokenStream]) -> Option<Error> {
    if !options.is_empty() {
        return Some(Error::new_spanned(options, "options belong to the methods: `#[tool(..)]`"));
    }
    if let Some((path, _)) = &block.trait_ {
        let message = "`#[handlers]` goes on an `impl` block of the type alone, without a trait";
        return Some(Error::new_spanned(path, message));
    }
    let message = "no method of this block is a tool, a prompt or a resource: put `#[tool]`, `#[prompt]` or `#[resource(\"..\")]` on one";
    routes.is_empty().then(|| Error::new_spanned(&block.self_ty, message))
}

/// Returns the route of a method with `#[tool]`, `#[prompt]` or `#[resource]`, and removes the attribute.
fn take(method: &mut ImplItemFn) -> Option<(Kind, Result<TokenStream>)> {
    let (ours, others): (Vec<_>, _) =
        std::mem::take(&mut method.attrs).into_iter().partition(|attr| kind_of(attr).is_some());
    method.attrs = others;
    let mut ours = ours.into_iter();
    let attr = ours.next()?;
    let kind = kind_of(&attr)?;
    let params = Params::take(kind, &mut method.sig);
    if let Some(second) = ours.next() {
        let message = "a method can have only one of these attributes: remove the others";
        return Some((kind, Err(Error::new_spanned(second, message))));
    }
    Some((kind, params.and_then(|params| route(kind, method, attr, params))))
}

fn route(kind: Kind, method: &ImplItemFn, attr: Attribute, params: Params) -> Result<TokenStream> {
    let options = match attr.meta {
        Meta::List(list) => Options::parse(kind, list.tokens)?,
        _ if kind == Kind::Resource => {
            let message = "a resource needs its URI: `#[resource(\"notes://{id}\")]`";
            return Err(Error::new_spanned(attr, message));
        }
        _ => Options::default(),
    };
    let name = &method.sig.ident;
    let function = match &params.receiver {
        Some(receiver) if is_shared(receiver) => {
            let this = this();
            quote_spanned!(name.span()=> #this.#name)
        }
        Some(receiver) => {
            return Err(Error::new_spanned(
                receiver,
                "calls run concurrently: take `&self` or `self: Arc<Self>`, and keep mutable state behind a `Mutex`",
            ));
        }
        None => quote!(Self::#name),
    };
    route::route(kind, &method.sig, &method.attrs, &options, params, &function)
}

/// Returns whether calls can share the receiver: `&self`, `self: Arc<Self>`, `self: &Arc<Self>`.
fn is_shared(receiver: &Receiver) -> bool {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, mutable) => mutable.is_none(),
        ReceiverKind::Typed(_, ty) => match &**ty {
            Type::Reference(reference) => reference.mutability.is_none() && is(&reference.elem, "Arc"),
            ty => is(ty, "Arc"),
        },
        _ => false,
    }
}

/// Returns the kind of `#[tool]`, `#[prompt]` or `#[resource]`, with or without a path.
fn kind_of(attr: &Attribute) -> Option<Kind> {
    attr.path().segments.last().and_then(|segment| Kind::named(&segment.ident.to_string()))
}
