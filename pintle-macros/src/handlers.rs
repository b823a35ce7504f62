use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Receiver, ReceiverKind, Result, spanned::Spanned,
};

use crate::{
    options::Options,
    params::Params,
    tool::{self, this},
};

/// `#[handlers]` on an `impl` block: the block, and beside it functions that make tools of its methods.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !options.is_empty() {
        return Err(Error::new(options.span(), "options belong to the methods: `#[tool(..)]`"));
    }
    let mut block: ItemImpl = syn::parse2(item).map_err(|error| {
        Error::new(error.span(), "`#[handlers]` goes on an `impl` block: `impl Notes { .. }`")
    })?;
    if let Some((path, _)) = &block.trait_ {
        return Err(Error::new(
            path.span(),
            "`#[handlers]` goes on an `impl` block of the type alone, without a trait",
        ));
    }
    let mut routes = Vec::new();
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            routes.extend(take(method)?);
        }
    }
    if routes.is_empty() {
        return Err(Error::new(
            block.self_ty.span(),
            "no method of this block is a tool: put `#[tool]` on one",
        ));
    }
    let (generics, _, conditions) = block.generics.split_for_impl();
    let (ty, this) = (&block.self_ty, this());
    Ok(quote! {
        #block

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
    })
}

/// The route of a method that carries `#[tool]`, which is taken away.
fn take(method: &mut ImplItemFn) -> Result<Option<TokenStream>> {
    let Some(at) = method.attrs.iter().position(is_tool) else { return Ok(None) };
    let options = match method.attrs.remove(at).meta {
        Meta::List(list) => Options::parse(list.tokens)?,
        _ => Options::default(),
    };
    let params = Params::take(&mut method.sig)?;
    let name = &method.sig.ident;
    let function = match &params.receiver {
        Some(Receiver { kind: ReceiverKind::Reference(_, _, None), .. }) => {
            let this = this();
            quote_spanned!(name.span()=> #this.#name)
        }
        Some(receiver) => {
            return Err(Error::new(
                receiver.span(),
                "calls run at the same time: take `&self`, and keep what changes behind a `Mutex`",
            ));
        }
        None => quote!(Self::#name),
    };
    tool::route(&method.sig, &method.attrs, &options, &params, &function).map(Some)
}

/// `#[tool]`, or with its path.
fn is_tool(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}
