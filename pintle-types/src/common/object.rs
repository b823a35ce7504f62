/// Defines an object of the protocol: a struct whose fields are public, and its `new`.
///
/// A field `name?` is an `Option` that is not printed if it is `None`. At the end, `..` adds the fields that this crate
/// does not know, and `..meta` also the metadata. `new` takes the required fields. `Debug` and `Default` are derived
/// where the definition says so.
macro_rules! object {
    ($(#[$about:meta])* $object:ident $fields:tt $(#[$creates:meta])* new $arguments:tt) => {
        $crate::common::object! { $(#[$about])* $object $fields }
        $crate::common::object! { @new $object $fields $(#[$creates])* $arguments }
    };
    ($(#[$about:meta])* $object:ident {
        $($(#[$doc:meta])* $field:ident $(?: $optional:ty)? $(: $required:ty)?,)* .. $($meta:ident)?
    }) => {
        $(#[$about])*
        #[non_exhaustive]
        #[derive(Clone, serde::Deserialize, PartialEq, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $object {
            $(
                $(#[$doc])*
                $(#[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$optional>,)?
                $(pub $field: $required,)?
            )*
            $(
                /// Metadata.
                #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
                pub $meta: Option<$crate::Meta>,
            )?
            /// Fields that this crate does not know.
            #[serde(flatten)]
            pub extra: $crate::JsonObject,
        }
    };
    (@new $object:ident {
        $($(#[$doc:meta])* $field:ident $(?: $optional:ty)? $(: $required:ty)?,)* .. $($meta:ident)?
    } $(#[$creates:meta])* ($($argument:ident: $given:ty),*)) => {
        impl $object {
            $(#[$creates])*
            pub fn new($($argument: $given),*) -> Self {
                Self {
                    $($argument: $argument.into(),)*
                    $($($field: None::<$optional>,)?)*
                    $($meta: None,)?
                    extra: $crate::JsonObject::new(),
                }
            }
        }
    };
}
pub(crate) use object;
