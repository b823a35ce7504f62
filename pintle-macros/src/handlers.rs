use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Receiver, ReceiverKind, Result};

use crate::{
    options::Options,
    params::Params,
    tool::{self, this},
};

/// `#[handlers]` on an `impl` block: the block, and beside it functions that make tools of its methods.
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
    let routes: Vec<_> = methods.map(|route| route.unwrap_or_else(Error::into_compile_error)).collect();
    let fault = fault(options, &block, &routes).map(Error::into_compile_error);
    let (generics, _, conditions) = block.generics.split_for_impl();
    let (ty, this) = (&block.self_ty, this());
    quote! {
        #block
        #fault

        #[allow(dead_code)]
        impl #generics #ty #conditions {
            /// The tools that these methods are.
            pub fn into_tools(self) -> ::std::vec::Vec<::pintle::server::ToolRoute> {
                Self::tools(&::std::sync::Arc::new(self))
            }

            /// The tools that these methods are, of a value that others hold too.
            pub fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::pintle::server::ToolRoute> {
                let #this = self;
                ::std::vec::Vec::from([#({ let #this = ::std::sync::Arc::clone(#this); #routes }),*])
            }
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
    let said = "no method of this block is a tool: put `#[tool]` on one";
    routes.is_empty().then(|| Error::new_spanned(&block.self_ty, said))
}

/// The route of a method that carries `#[tool]`, which is taken away.
fn take(method: &mut ImplItemFn) -> Option<Result<TokenStream>> {
    let at = method.attrs.iter().position(is_tool)?;
    let attr = method.attrs.remove(at);
    let params = Params::take(&mut method.sig);
    Some(params.and_then(|params| route(method, attr.meta, &params)))
}

fn route(method: &ImplItemFn, attr: Meta, params: &Params) -> Result<TokenStream> {
    let options = match attr {
        Meta::List(list) => Options::parse(list.tokens)?,
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
    tool::route(&method.sig, &method.attrs, &options, params, &function)
}

/// `#[tool]`, or with its path.
fn is_tool(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}
