use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Error, FnArg, Ident, LitStr, Pat, PatType, Receiver, Result, Signature, Type, ext::IdentExt,
    spanned::Spanned,
};

use crate::{
    arg::Arg,
    docs,
    kind::{Kind, is, is_typed, optional},
    uri::Uri,
};

/// Types that are extracted from the call and not from its arguments. A macro sees only names. `Principal` is that of `pintle-oauth`.
const FROM_CALL: &[&str] =
    &["Args", "Arguments", "Cx", "Extension", "HttpHead", "Principal", "PromptArguments", "State", "Vars"];

/// The parameters of a function that becomes a route.
pub(crate) struct Params {
    kind: Kind,
    pub(crate) receiver: Option<Receiver>,
    /// The values to pass to the function, in its order.
    pub(crate) passed: Vec<Ident>,
    /// The names and types of the extractors.
    extracted: Vec<(Ident, Type)>,
    fields: Vec<Field>,
}

struct Field {
    name: Ident,
    /// The variable that holds its value in the handler.
    variable: Ident,
    ty: Type,
    docs: Option<String>,
    arg: Arg,
}

impl Params {
    /// Parses the parameters and removes our attributes.
    pub(crate) fn take(kind: Kind, signature: &mut Signature) -> Result<Self> {
        let (passed, extracted, fields) = Default::default();
        let mut params = Self { kind, receiver: None, passed, extracted, fields };
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
                    "this parameter is extracted from the call and is not an argument: remove `#[arg]`",
                ));
            }
            self.admit(&ty)?;
            let name = Ident::new(&format!("extracted{}", self.extracted.len()), Span::mixed_site());
            self.passed.push(name.clone());
            self.extracted.push((name, ty));
            return Ok(());
        }
        self.kind.admits(&ty)?;
        let Pat::Ident(pattern) = &*param.pat else {
            let message = format!("{} needs a name: write `name: Type`", self.kind.parameter());
            return Err(Error::new(param.pat.span(), message));
        };
        let name = pattern.ident.clone();
        let args = ours.iter().filter(|attr| attr.path().is_ident("arg"));
        let arg = Arg::parse(&name, &ty, args)?;
        let variable = variable(self.fields.len(), &name);
        self.passed.push(variable.clone());
        self.fields.push(Field { name, variable, ty, docs: docs::text(&ours), arg });
        Ok(())
    }

    /// Checks that this kind supports the extractor, and that it is used only once.
    fn admit(&self, ty: &Type) -> Result<()> {
        let (word, whole) = (self.kind.word(), self.kind.whole());
        if let Some(stranger) = self.kind.strangers().iter().find(|name| is(ty, name)) {
            let message =
                format!("a {word} does not support `{stranger}`: use plain parameters, or `{whole}<T>`");
            return Err(Error::new(ty.span(), message));
        }
        if is_typed(ty, whole) && self.takes_whole() {
            let message = format!("a {word} takes `{whole}` once: put all fields into one struct");
            return Err(Error::new(ty.span(), message));
        }
        Ok(())
    }

    fn takes_whole(&self) -> bool {
        self.extracted.iter().any(|(_, ty)| is_typed(ty, self.kind.whole()))
    }

    /// Checks that plain parameters and `Args` are not mixed.
    pub(crate) fn agree(&self) -> Result<()> {
        let whole = self.kind.whole();
        let what = if self.kind == Kind::Resource { "variables" } else { "arguments" };
        match self.fields.first() {
            Some(field) if self.takes_whole() => Err(Error::new_spanned(
                &field.name,
                format!(
                    "`{whole}` takes all {what}: make this a field of its struct, or write plain parameters only"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Binds each parameter to a variable of a URI, and checks that every variable has a parameter.
    ///
    /// A variable without a parameter is usually a mistake. `_name` ignores one on purpose.
    pub(crate) fn bind(&mut self, uri: &Uri) -> Result<()> {
        for field in &mut self.fields {
            let name = field.wire_name();
            if uri.has(&name) {
                continue;
            }
            match name.strip_prefix('_').filter(|name| field.arg.rename.is_none() && uri.has(name)) {
                Some(name) => field.arg.rename = Some(LitStr::new(name, field.name.span())),
                None => {
                    let (text, advice) = (uri.text.value(), uri.advice());
                    let message = format!("`{name}` is not a variable of `{text}`: {advice}");
                    return Err(Error::new(field.name.span(), message));
                }
            }
        }
        let taken = |name: &String| self.fields.iter().any(|field| field.wire_name() == *name);
        match uri.variables.iter().find(|name| !taken(name)) {
            Some(name) if !self.extracted.iter().any(|(_, ty)| is(ty, "Vars")) => Err(Error::new(
                uri.text.span(),
                format!(
                    "no parameter takes the variable `{name}`: add `{name}: String`, or `_{name}: String` if it is unused"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the builder calls that add completers.
    pub(crate) fn completers(&self) -> TokenStream {
        let calls = self.fields.iter().filter_map(|field| {
            let (name, completer) = (field.wire_name(), field.arg.complete.as_ref()?);
            Some(quote!(.complete(#name, #completer)))
        });
        calls.collect()
    }

    /// Returns the struct of the arguments, and functions for their defaults. `called` is its name in errors and schemas.
    pub(crate) fn declaration(&self, called: &Ident) -> TokenStream {
        if self.fields.is_empty() {
            return TokenStream::new();
        }
        let fields = self.fields.iter().enumerate().map(|(index, field)| field.print(index));
        let defaults = self.fields.iter().map(|field| &field.arg.default);
        let (takes, ..) = self.kind.checks();
        let checks = self
            .fields
            .iter()
            .map(|Field { ty, .. }| quote_spanned!(ty.span()=> let _ = ::pintle::__private::#takes::<#ty>;));
        let called = called.unraw().to_string();
        let (names, types): (Vec<_>, Vec<_>) = self.parameters().unzip();
        let (describe, extract) = self.kind.extraction();
        quote! {
            #[derive(::pintle::__private::serde::Deserialize, ::pintle::__private::schemars::JsonSchema)]
            #[serde(crate = "::pintle::__private::serde", rename = #called)]
            #[schemars(crate = "::pintle::__private::schemars")]
            struct __Arguments<#(#names),*> { #(#fields)* }
            #(#defaults)*
            #(#checks)*

            struct __Extracted(__Arguments<#(#types),*>);

            impl ::pintle::server::FromCall for __Extracted {
                fn describe(description: &mut ::pintle::server::Description<'_>) {
                    #[allow(unused_imports)]
                    use ::pintle::__private::{CannotExtract as _, Extract as _};
                    (&::pintle::__private::Probe::<__Arguments<#(#types),*>>::new()).#describe(description)
                }

                fn from_call(
                    cx: &::pintle::server::Cx,
                ) -> ::std::result::Result<Self, ::pintle::server::Outcome> {
                    #[allow(unused_imports)]
                    use ::pintle::__private::{CannotExtract as _, Extract as _};
                    (&::pintle::__private::Probe::<__Arguments<#(#types),*>>::new()).#extract(cx).map(Self)
                }
            }
        }
    }

    /// Returns the type parameters of the struct of the arguments, with the types of the fields that have them.
    ///
    /// The derived code is generic, so that the compiler finds nothing wrong with it if the type of a field is unsuitable.
    fn parameters(&self) -> impl Iterator<Item = (Ident, &Type)> {
        let fields = self.fields.iter().enumerate().filter(|(_, field)| field.is_generic());
        fields.map(|(index, field)| (parameter(index), &field.ty))
    }

    /// Returns the parameters of the handler.
    pub(crate) fn closure(&self) -> TokenStream {
        let extracted = self.extracted.iter().map(|(name, ty)| quote!(#name: #ty,));
        let fields = self.fields.iter().map(|Field { name, variable, .. }| quote!(#name: #variable));
        let arguments =
            (!self.fields.is_empty()).then(|| quote!(__Extracted(__Arguments { #(#fields),* }): __Extracted));
        quote!(#(#extracted)* #arguments)
    }
}

impl Field {
    /// Returns whether its type is a type parameter. A field with a default has its own type, which the schema needs.
    fn is_generic(&self) -> bool {
        !self.arg.has_default
    }

    fn print(&self, index: usize) -> TokenStream {
        let Self { name, ty, docs, arg, .. } = self;
        let parameter = parameter(index);
        let ty = if self.is_generic() { quote!(#parameter) } else { quote!(#ty) };
        let docs = docs.iter().filter(|_| !arg.described);
        let (attrs, rename) = (&arg.attrs, arg.rename.iter());
        quote!(#(#[doc = #docs])* #(#[serde(rename = #rename)])* #attrs #name: #ty,)
    }

    /// Returns the name on the wire.
    fn wire_name(&self) -> String {
        self.arg.rename.as_ref().map_or_else(|| self.name.unraw().to_string(), LitStr::value)
    }
}

/// Returns the name of the type parameter of a field.
fn parameter(index: usize) -> Ident {
    Ident::new(&format!("__T{index}"), Span::mixed_site())
}

/// Returns the variable for the value of a field. Its own name could be that of the function, which would hide it.
fn variable(index: usize, name: &Ident) -> Ident {
    Ident::new(&format!("argument{index}"), Span::mixed_site().located_at(name.span()))
}

fn is_ours(attr: &Attribute) -> bool {
    ["arg", "doc", "extract"].iter().any(|name| attr.path().is_ident(name))
}

fn is_from_call(ty: &Type) -> bool {
    match optional(ty) {
        Some(inner) => ["Extension", "HttpHead"].iter().any(|name| is(inner, name)),
        None => FROM_CALL.iter().any(|name| is(ty, name)),
    }
}
