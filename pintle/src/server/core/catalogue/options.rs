use std::time::Duration;

use pintle_proto::server::{CacheHint, Change};
use pintle_types::Meta;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Catalogue;
use crate::server::{
    Entry, Form, Next,
    access::required::Required,
    core::{
        driver::layer::kept,
        handler::extract::{HandlerKind, Need},
    },
    ordered_map::OrderedMap,
};

/// The options that all four kinds of routes share: the handler, and who may reach it.
#[derive(Clone, Debug)]
pub(crate) struct RouteOptions {
    /// The handler, inside the layers of this route.
    pub(crate) next: Next,
    /// The rights that a caller needs.
    pub(crate) required: Required,
    /// Mistakes in the declaration. A route that has any is not added.
    pub(crate) faults: Vec<String>,
    /// The state that the handler takes from the server.
    pub(crate) needs: Vec<Need>,
    /// The timeout of a call, if it is not the server's; `None` in it means no limit.
    pub(crate) timeout: Option<Option<Duration>>,
}

impl RouteOptions {
    pub(crate) fn new(next: Next, faults: Vec<String>, needs: Vec<Need>) -> Self {
        Self { next, required: Required::default(), faults, needs, timeout: None }
    }

    /// Applies a cache hint to every complete result.
    pub(super) fn cache(&mut self, hint: CacheHint) {
        self.next = kept(self.next.clone(), hint);
    }

    /// Records the fault that an argument has two completers.
    pub(super) fn completed_twice(&mut self, kind: HandlerKind, key: &str, argument: &str) {
        let kind = kind.word();
        self.faults.push(format!("the {kind} `{key}` has two completers for `{argument}`; keep one of them"));
    }

    /// Records a fault if `T` cannot be the form of a question.
    pub(super) fn check_form<T: DeserializeOwned + JsonSchema>(&mut self, kind: HandlerKind, key: &str) {
        if let Err(error) = Form::of::<T>() {
            self.faults.push(format!("the {} `{key}` cannot ask for this: {error}", kind.word()));
        }
    }
}

/// Adds members to `_meta`. A later value replaces an earlier one of the same key.
pub(super) fn merge_meta(meta: &mut Option<Meta>, more: Meta) {
    meta.get_or_insert_default().as_object_mut().extend(more.into_object());
}

/// One of the four kinds of routes that a catalogue holds.
pub(crate) trait CatalogueRoute: Sized {
    const KIND: HandlerKind;
    /// The change that is announced when the list of this kind changes.
    const CHANGE: Change;

    /// Returns the name or URI that identifies the route among those of its kind.
    fn key(&self) -> &str;
    /// Returns the part of the route that clients see in a list.
    fn entry(&self) -> Entry<'_>;
    fn options(&self) -> &RouteOptions;
    /// Returns the routes of this kind.
    fn routes(catalogue: &mut Catalogue) -> &mut OrderedMap<Self>;
    /// Computes what a call needs, once, when the route is added. Errors become faults.
    fn prepare(&mut self);
}

/// Implements [`CatalogueRoute`], `Debug` and the builder methods that all four kinds of routes have.
macro_rules! route_methods {
    (
        $route:ident, $kind:ident, $definition:ident . $key:ident: $definition_type:ident, $change:ident,
        $routes:ident $(, prepare: $prepare:path)?
    ) => {
        impl $route {
            /// Sets the title, which user interfaces show instead of the name.
            #[must_use]
            pub fn title(mut self, text: impl Into<String>) -> Self {
                self.$definition.title = Some(text.into());
                self
            }

            /// Sets the description, which the model and its user read.
            #[must_use]
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.$definition.description = Some(text.into());
                self
            }

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: ::pintle_types::schema::Icon) -> Self {
                self.$definition.icons.get_or_insert_default().push(icon);
                self
            }

            /// Adds members to the `_meta` of the list entry. A later value replaces an earlier one of the same key.
            #[must_use]
            pub fn meta(mut self, meta: ::pintle_types::Meta) -> Self {
                $crate::server::core::catalogue::options::merge_meta(&mut self.$definition.meta, meta);
                self
            }

            /// Returns the list entry, as clients see it.
            pub fn definition(&self) -> &::pintle_types::schema::$definition_type {
                &self.$definition
            }

            /// Sets the timeout of a call, in place of [`Server::call_timeout`](crate::server::Server::call_timeout); `None` means
            /// no limit. The time in which the client answers a question does not count.
            ///
            /// ```
            /// use std::time::Duration;
            /// use pintle::server::tool;
            ///
            /// let search = tool("search", || async { "…" }).timeout(Duration::from_secs(5));
            /// let import = tool("import", || async { "…" }).timeout(None);
            /// ```
            #[must_use]
            pub fn timeout(mut self, timeout: impl Into<Option<::std::time::Duration>>) -> Self {
                self.options.timeout = Some(timeout.into());
                self
            }

            /// Checks at startup that a `T` can be asked for with [`elicit`](crate::server::Cx::elicit).
            #[must_use]
            pub fn asks<T: ::serde::de::DeserializeOwned + ::schemars::JsonSchema>(mut self) -> Self {
                let kind = $crate::server::core::handler::extract::HandlerKind::$kind;
                self.options.check_form::<T>(kind, &self.$definition.$key);
                self
            }

            /// Restricts the route to callers who have all of these rights: the scopes of their token, if the server is
            /// protected by OAuth.
            ///
            /// Over HTTP a caller who lacks a right receives 403 before the handler runs, and a client that supports it
            /// asks its user to grant more. A caller whom nothing [authenticates](crate::server::Authenticated) lacks
            /// every right, and so does a caller over TCP. The [local](crate::server::Principal::Local) user, at the other
            /// end of a pipe, has every right.
            ///
            /// ```
            /// use pintle::server::tool;
            ///
            /// let clear = tool("clear", || async { "Cleared." }).requires(["notes:write"]);
            /// ```
            #[must_use]
            pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
                self.options.required.add(rights);
                self
            }

            /// Hides the route from callers who lack a right that it [requires](Self::requires): it is in none of their
            /// lists, and requests for it are answered as if it did not exist.
            #[must_use]
            pub fn hidden(mut self) -> Self {
                self.options.required.hide();
                self
            }

            /// Wraps the handler in a `tower` layer; [`around`](crate::server::around) makes a layer from a function.
            #[must_use]
            pub fn layer<L>(mut self, layer: &L) -> Self
            where
                L: ::tower_layer::Layer<$crate::server::Next>,
                L::Service: ::tower_service::Service<$crate::server::Cx, Response = ::pintle_proto::server::Outcome>
                    + Clone
                    + Send
                    + Sync
                    + 'static,
                <L::Service as ::tower_service::Service<$crate::server::Cx>>::Error: ::std::fmt::Display + Send,
                <L::Service as ::tower_service::Service<$crate::server::Cx>>::Future: Send + 'static,
            {
                self.options.next = self.options.next.wrapped(layer, $crate::server::core::driver::layer::outcome);
                self
            }
        }

        impl $crate::server::core::catalogue::options::CatalogueRoute for $route {
            const KIND: $crate::server::core::handler::extract::HandlerKind = $crate::server::core::handler::extract::HandlerKind::$kind;
            const CHANGE: ::pintle_proto::server::Change = ::pintle_proto::server::Change::$change;

            fn key(&self) -> &str {
                &self.$definition.$key
            }

            fn entry(&self) -> $crate::server::Entry<'_> {
                $crate::server::Entry::$kind(&self.$definition)
            }

            fn options(&self) -> &$crate::server::core::catalogue::options::RouteOptions {
                &self.options
            }

            fn routes(
                catalogue: &mut $crate::server::core::catalogue::Catalogue,
            ) -> &mut $crate::server::ordered_map::OrderedMap<Self> {
                &mut catalogue.$routes
            }

            fn prepare(&mut self) {
                $($prepare(self);)?
            }
        }

        impl ::std::fmt::Debug for $route {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($route))
                    .field(stringify!($definition), &self.$definition)
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Implements the builder methods of routes that are identified by a name.
macro_rules! name_methods {
    ($route:ident, $definition:ident) => {
        impl $route {
            /// Changes the name.
            #[must_use]
            pub fn rename(mut self, name: impl Into<String>) -> Self {
                self.$definition.name = name.into();
                self
            }

            /// Puts a prefix before the name, to keep it apart from others:
            ///
            /// ```
            /// use pintle::server::tool;
            ///
            /// let open = tool("open", || async { "open" }).prefix("door_");
            /// assert_eq!(open.definition().name, "door_open");
            /// ```
            #[must_use]
            pub fn prefix(mut self, prefix: &str) -> Self {
                self.$definition.name.insert_str(0, prefix);
                self
            }
        }
    };
}

/// Implements the builder methods of routes whose handler returns the contents of a resource.
macro_rules! content_methods {
    ($route:ident, $definition:ident) => {
        impl $route {
            /// Sets the MIME type of the contents.
            #[must_use]
            pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
                self.$definition.mime_type = Some(mime.into());
                self
            }

            /// Sets the audience and the priority.
            #[must_use]
            pub fn annotations(mut self, annotations: ::pintle_types::schema::Annotations) -> Self {
                self.$definition.annotations = Some(annotations);
                self
            }

            /// Sets how long the contents may be cached, and by whom.
            #[must_use]
            pub fn cache(mut self, hint: ::pintle_proto::server::CacheHint) -> Self {
                self.options.cache(hint);
                self
            }
        }
    };
}

/// Implements `complete` for routes whose handler takes named texts.
macro_rules! completion_methods {
    ($route:ident, $definition:ident . $key:ident, $argument:literal) => {
        impl $route {
            #[doc = concat!("Completes the values of one ", $argument, ".")]
            ///
            #[doc = concat!("Two completers for one ", $argument, " are an error: [`Server::check`](crate::server::Server::check) reports it,")]
            /// and `serve` refuses to start. Nothing is overwritten.
            ///
            /// A completer is a handler: it takes [`Partial`](crate::server::Partial), the text so far, and like any handler
            /// [`State`](crate::server::State), [`Extension`](crate::server::Extension) and [`Cx`](crate::server::Cx).
            ///
            /// ```
            /// use pintle::server::{Partial, PromptArguments, Server, State, prompt};
            ///
            /// #[derive(Clone)]
            /// struct Cities(Vec<&'static str>);
            ///
            /// async fn cities(State(Cities(known)): State<Cities>, typed: Partial) -> Vec<&'static str> {
            ///     known.into_iter().filter(|city| city.starts_with(&typed.value)).collect()
            /// }
            ///
            /// let weather = prompt("weather", |given: PromptArguments| async move { format!("The weather in {}?", given["city"]) })
            ///     .argument("city", "A city.")
            ///     .complete("city", cities);
            /// let server = Server::new("weather", "1.0.0").with_state(Cities(vec!["Oslo", "Bergen"])).prompt(weather);
            /// # server.check().unwrap();
            /// ```
            #[must_use]
            pub fn complete<M: 'static, H>(mut self, name: impl Into<String>, completer: H) -> Self
            where
                H: $crate::server::Handler<M, Output: $crate::server::IntoValues>,
            {
                let name = name.into();
                match self.completers.add(name.clone(), completer) {
                    Some((faults, needs)) => {
                        self.options.faults.extend(faults);
                        self.options.needs.extend(needs);
                    }
                    None => {
                        let kind = <Self as $crate::server::core::catalogue::options::CatalogueRoute>::KIND;
                        self.options.completed_twice(kind, &self.$definition.$key, &name);
                    }
                }
                self
            }
        }
    };
}

pub(super) use {completion_methods, content_methods, name_methods, route_methods};
