use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Pat, PatType, PathArguments, PathSegment, Receiver,
    Result, Signature, Type, ext::IdentExt, spanned::Spanned,
};

use crate::{arg::Arg, docs};

/// Types that come from the call and not from its arguments. A macro sees names only, so names decide.
const FROM_CALL: &[&str] = &["Args", "Arguments", "Cx", "Extension", "State"];

/// The parameters of a function that becomes a tool.
#[derive(Default)]
pub(crate) struct Params {
    pub(crate) receiver: Option<Receiver>,
    /// In the order of the function, what to hand to it.
    pub(crate) passed: Vec<Ident>,
    /// What the handler takes from the call: names and types.
    extracted: Vec<(Ident, Type)>,
    fields: Vec<Field>,
}

struct Field {
    name: Ident,
    ty: Type,
    docs: Option<String>,
    arg: Arg,
}

impl Params {
    /// Reads the parameters and takes away the attributes that are ours.
    pub(crate) fn take(signature: &mut Signature) -> Result<Self> {
        let mut params = Self::default();
        let mut fault = None;
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) => params.receiver = Some(receiver.clone()),
                FnArg::Typed(param) => fault = fault.or(params.take_one(param).err()),
            }
        }
        fault.map_or(Ok(params), Err)
    }

    fn take_one(&mut self, param: &mut PatType) -> Result<()> {
        let (ours, others): (Vec<Attribute>, _) =
            std::mem::take(&mut param.attrs).into_iter().partition(is_ours);
        param.attrs = others;
        let ty = (*param.ty).clone();
        if ours.iter().any(|attr| attr.path().is_ident("extract")) || is_from_call(&ty) {
            if let Some(attr) = ours.iter().find(|attr| attr.path().is_ident("arg")) {
                return Err(Error::new_spanned(
                    attr,
                    "this comes from the call and is no argument: take `#[arg]` away",
                ));
            }
            if is(&ty, "Args") && self.extracted.iter().any(|(_, other)| is(other, "Args")) {
                return Err(Error::new(
                    ty.span(),
                    "a tool takes `Args` once: put all fields into one struct",
                ));
            }
            let name = Ident::new(&format!("extracted{}", self.extracted.len()), Span::mixed_site());
            self.passed.push(name.clone());
            self.extracted.push((name, ty));
            return Ok(());
        }
        plain(&ty)?;
        let Pat::Ident(pattern) = &*param.pat else {
            return Err(Error::new(
                param.pat.span(),
                "an argument of a tool needs a name: write `name: Type`",
            ));
        };
        let name = pattern.ident.clone();
        let args = ours.iter().filter(|attr| attr.path().is_ident("arg"));
        let arg = Arg::parse(&name, &ty, args)?;
        self.passed.push(name.clone());
        self.fields.push(Field { name, ty, docs: docs::text(&ours), arg });
        Ok(())
    }

    /// That plain parameters and `Args` do not both want the arguments.
    pub(crate) fn agree(&self) -> Result<()> {
        let whole = self.extracted.iter().find(|(_, ty)| is(ty, "Args"));
        match (whole, self.fields.first()) {
            (Some(_), Some(field)) => Err(Error::new_spanned(
                &field.name,
                "`Args` takes all arguments: make this a field of its struct, or write plain parameters only",
            )),
            _ => Ok(()),
        }
    }

    /// The struct of the arguments, and functions for their defaults. `called` is what errors and schemas call it.
    pub(crate) fn declaration(&self, called: &Ident) -> TokenStream {
        if self.fields.is_empty() {
            return TokenStream::new();
        }
        let fields = self.fields.iter().map(Field::print);
        let defaults = self.fields.iter().map(|field| &field.arg.default);
        let checks = self
            .fields
            .iter()
            .map(|Field { ty, .. }| quote_spanned!(ty.span()=> let _ = ::pintle::__private::takes::<#ty>;));
        let called = called.unraw().to_string();
        quote! {
            #[derive(::pintle::__private::serde::Deserialize, ::pintle::__private::schemars::JsonSchema)]
            #[serde(crate = "::pintle::__private::serde", rename = #called)]
            #[schemars(crate = "::pintle::__private::schemars")]
            struct __Arguments { #(#fields)* }
            #(#defaults)*
            #(#checks)*
        }
    }

    /// The parameters of the handler.
    pub(crate) fn closure(&self) -> TokenStream {
        let extracted = self.extracted.iter().map(|(name, ty)| quote!(#name: #ty,));
        let names = self.fields.iter().map(|field| &field.name);
        let arguments = (!self.fields.is_empty()).then(|| {
            quote!(::pintle::server::Args(__Arguments { #(#names),* }): ::pintle::server::Args<__Arguments>)
        });
        quote!(#(#extracted)* #arguments)
    }
}

impl Field {
    fn print(&self) -> TokenStream {
        let Self { name, ty, docs, arg } = self;
        let docs = docs.iter().filter(|_| !arg.described);
        let attrs = &arg.attrs;
        quote!(#(#[doc = #docs])* #attrs #name: #ty,)
    }
}

fn is_ours(attr: &Attribute) -> bool {
    ["arg", "doc", "extract"].iter().any(|name| attr.path().is_ident(name))
}

fn is_from_call(ty: &Type) -> bool {
    let optional = last(ty).filter(|segment| segment.ident == "Option").and_then(|segment| {
        let PathArguments::AngleBracketed(inner) = &segment.arguments else { return None };
        inner.args.first()
    });
    match optional {
        Some(GenericArgument::Type(inner)) => is(inner, "Extension"),
        _ => FROM_CALL.iter().any(|name| is(ty, name)),
    }
}

/// Whether the type's path ends in this name.
fn is(ty: &Type, name: &str) -> bool {
    last(ty).is_some_and(|segment| segment.ident == name)
}

fn last(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// An argument outlives the message it came in, and has one type.
fn plain(ty: &Type) -> Result<()> {
    let said = match ty {
        Type::Reference(reference) if is(&reference.elem, "str") => {
            "an argument of a tool is its own: take a `String`".to_owned()
        }
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(_) => "an argument of a tool is its own: take a `Vec<T>`".to_owned(),
            _ => "an argument of a tool is its own: take it without `&`".to_owned(),
        },
        Type::ImplTrait(_) => "an argument of a tool has one type: name it instead of `impl`".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, said))
}
