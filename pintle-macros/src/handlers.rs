use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Receiver, ReceiverKind, Result};

use crate::{
    kind::Kind,
    options::Options,
    params::Params,
    route::{self, this},
};

/// `#[handlers]` on an `impl` block: the block, and beside it functions that make routes of its methods.
///
/// A mistake takes the place of a route, so that the compiler speaks of nothing else.
pub(crate) fn expand(options: &TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        let said = "`#[handlers]` goes on an `impl` block: `impl Notes { .. }`";
        let error = Error::new_spanned(item, said).into_compile_error();
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
    // Where there are others besides, `into_tools` would leave something out.
    let makers = if kinds.iter().all(|kind| *kind == Kind::Tool) { tools(&routes) } else { all(&routes) };
    quote! {
        #block
        #fault

        #[allow(dead_code)]
        impl #generics #ty #conditions {
            #makers

            /// The tools, prompts and resources that these methods are.
            pub fn into_routes(self) -> ::std::vec::Vec<::pintle::server::Route> {
                Self::routes(&::std::sync::Arc::new(self))
            }
        }
    }
}

fn tools(routes: &[TokenStream]) -> TokenStream {
    let this = this();
    quote! {
        /// The tools that these methods are.
        pub fn into_tools(self) -> ::std::vec::Vec<::pintle::server::ToolRoute> {
            Self::tools(&::std::sync::Arc::new(self))
        }

        /// The tools that these methods are, of a value that others hold too.
        pub fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::ToolRoute> {
            let #this = self;
            ::std::vec::Vec::from([#({ let #this = ::std::sync::Arc::clone(#this); #routes }),*])
        }

        /// The same, for a server that takes others besides.
        pub fn routes(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::Route> {
            Self::tools(self).into_iter().map(::std::convert::Into::into).collect()
        }
    }
}

fn all(routes: &[TokenStream]) -> TokenStream {
    let this = this();
    quote! {
        /// The tools, prompts and resources that these methods are, of a value that others hold too.
        pub fn routes(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::Route> {
            let #this = self;
            ::std::vec::Vec::from([#({
                let #this = ::std::sync::Arc::clone(#this);
                ::std::convert::Into::into({ #routes })
            }),*])
        }
    }
}

/// What is wrong with the block as a whole.
fn fault(options: &TokenStream, block: &ItemImpl, routes: &[TokenStream]) -> Option<Error> {
    if !options.is_empty() {
        return Some(Error::new_spanned(options, "options belong to the methods: `#[tool(..)]`"));
    }
    if let Some((path, _)) = &block.trait_ {
        let said = "`#[handlers]` goes on an `impl` block of the type alone, without a trait";
        return Some(Error::new_spanned(path, said));
    }
    let said = "no method of this block is a tool, a prompt or a resource: put `#[tool]`, `#[prompt]` or `#[resource(\"..\")]` on one";
    routes.is_empty().then(|| Error::new_spanned(&block.self_ty, said))
}

/// The route of a method that carries `#[tool]` or its kin, which are taken away.
fn take(method: &mut ImplItemFn) -> Option<(Kind, Result<TokenStream>)> {
    let (ours, others): (Vec<_>, _) =
        std::mem::take(&mut method.attrs).into_iter().partition(|attr| kind_of(attr).is_some());
    method.attrs = others;
    let mut ours = ours.into_iter();
    let attr = ours.next()?;
    let kind = kind_of(&attr)?;
    let params = Params::take(kind, &mut method.sig);
    if let Some(second) = ours.next() {
        let said = "a method is one thing: take one of the attributes away";
        return Some((kind, Err(Error::new_spanned(second, said))));
    }
    Some((kind, params.and_then(|params| route(kind, method, attr, params))))
}

fn route(kind: Kind, method: &ImplItemFn, attr: Attribute, params: Params) -> Result<TokenStream> {
    let options = match attr.meta {
        Meta::List(list) => Options::parse(kind, list.tokens)?,
        _ if kind == Kind::Resource => {
            let said = "a resource needs its URI: `#[resource(\"notes://{id}\")]`";
            return Err(Error::new_spanned(attr, said));
        }
        _ => Options::default(),
    };
    let name = &method.sig.ident;
    let function = match &params.receiver {
        Some(Receiver { kind: ReceiverKind::Reference(_, _, None), .. }) => {
            let this = this();
            quote_spanned!(name.span()=> #this.#name)
        }
        Some(receiver) => {
            return Err(Error::new_spanned(
                receiver,
                "calls run at the same time: take `&self`, and keep what changes behind a `Mutex`",
            ));
        }
        None => quote!(Self::#name),
    };
    route::route(kind, &method.sig, &method.attrs, &options, params, &function)
}

/// `#[tool]` or its kin, by itself or with its path.
fn kind_of(attr: &Attribute) -> Option<Kind> {
    attr.path().segments.last().and_then(|segment| Kind::named(&segment.ident.to_string()))
}
