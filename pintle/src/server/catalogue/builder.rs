//! The builder methods that tools, prompts, resources and resource templates have in common.

/// Implements the methods of a route that are the same for each kind of entry: `$entry` is the field with the entry, `$key`
/// the member of it that names it.
macro_rules! route_builder {
    ($route:ident, $entry:ident, $key:ident, $noun:literal) => {
        impl $route {
            #[doc = concat!("Sets the title of the ", $noun, ": what people see in place of its name.")]
            #[must_use]
            pub fn title(mut self, text: impl Into<String>) -> Self {
                self.$entry.title = Some(text.into());
                self
            }

            #[doc = concat!("Sets the description of the ", $noun, ", for models and people.")]
            #[must_use]
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.$entry.description = Some(text.into());
                self
            }

            #[doc = concat!("Adds an icon to the ", $noun, ".")]
            #[must_use]
            pub fn icon(mut self, icon: pintle_types::schema::Icon) -> Self {
                self.$entry.icons.get_or_insert_default().push(icon);
                self
            }

            #[doc = concat!("Adds members to the `_meta` of the ", $noun, ". A member that is there already is replaced;")]
            /// the others stay.
            #[must_use]
            pub fn meta(mut self, meta: pintle_types::Meta) -> Self {
                self.$entry.meta.get_or_insert_default().as_object_mut().extend(meta.into_object());
                self
            }

            #[doc = concat!("Restricts the ", $noun, " to callers who have all of these rights: the scopes of their token, where the")]
            /// server is protected by OAuth.
            ///
            /// Over HTTP a caller who lacks one is answered with 403 before anything runs, and the client can ask its user for
            /// more. The same holds for every caller if nothing [authenticates](crate::server::Authenticated), and for
            /// connections over TCP. The [local](crate::server::Principal::Local) user, at the other end of a pipe, has every
            /// right.
            ///
            /// ```
            /// use pintle::server::tool;
            ///
            /// let clear = tool("clear", || async { "Cleared." }).requires(["notes:write"]);
            /// ```
            #[must_use]
            pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
                self.required.add(rights);
                self
            }

            #[doc = concat!("Hides the ", $noun, " from callers who lack what it [requires](Self::requires): it is in none of their lists, and")]
            /// using it is answered as if it did not exist.
            #[must_use]
            pub fn hidden(mut self) -> Self {
                self.required.hide();
                self
            }

            /// Checks when the server starts that a `T` can be asked for with [`elicit`](crate::server::Cx::elicit).
            #[must_use]
            pub fn asks<T: serde::de::DeserializeOwned + schemars::JsonSchema>(mut self) -> Self {
                if let Err(error) = crate::server::Form::of::<T>() {
                    let key = &self.$entry.$key;
                    self.faults.push(format!(concat!("the ", $noun, " `{}` cannot ask for this: {}"), key, error));
                }
                self
            }
        }
    };
}

/// Implements `complete` for a route whose entry has arguments.
macro_rules! route_completion {
    ($route:ident, $argument:literal) => {
        impl $route {
            #[doc = concat!("Completes the values of one ", $argument, ".")]
            #[must_use]
            pub fn complete<F, Fut>(mut self, name: impl Into<String>, completer: F) -> Self
            where
                F: Fn(crate::server::Partial) -> Fut + Send + Sync + 'static,
                Fut: Future<Output: IntoValues> + Send + 'static,
            {
                self.completers.add(name.into(), completer);
                self
            }
        }
    };
}

/// Implements the methods of a route whose entry has contents: resources and resource templates.
macro_rules! route_contents {
    ($route:ident, $entry:ident) => {
        impl $route {
            /// Sets the media type of the contents.
            #[must_use]
            pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
                self.$entry.mime_type = Some(mime.into());
                self
            }

            /// Sets the annotations: the intended audience and the importance.
            #[must_use]
            pub fn annotations(mut self, annotations: pintle_types::schema::Annotations) -> Self {
                self.$entry.annotations = Some(annotations);
                self
            }

            /// Sets how long clients may cache the contents, and for whom.
            #[must_use]
            pub fn cache(mut self, hint: pintle_proto::server::CacheHint) -> Self {
                self.next = self.next.kept(hint);
                self
            }
        }
    };
}

pub(super) use {route_builder, route_completion, route_contents};

#[cfg(test)]
mod tests {
    use pintle_types::Meta;
    use serde_json::{Value, json};

    use crate::server::{prompt, resource, template, tool};

    fn meta(members: Value) -> Meta {
        serde_json::from_value(members).unwrap()
    }

    #[test]
    fn members_of_meta_are_added_to_those_that_are_there() {
        let (first, second) = (|| meta(json!({"a/b": 1, "a/c": 1})), || meta(json!({"a/c": 2})));
        let together = Some(meta(json!({"a/b": 1, "a/c": 2})));
        let text = || async { "" };
        assert_eq!(tool("x", text).meta(first()).meta(second()).tool.meta, together);
        assert_eq!(prompt("x", text).meta(first()).meta(second()).prompt.meta, together);
        assert_eq!(resource("x:/", "x", text).meta(first()).meta(second()).resource.meta, together);
        assert_eq!(template("x:/{y}", "x", text).meta(first()).meta(second()).described.meta, together);
    }
}
