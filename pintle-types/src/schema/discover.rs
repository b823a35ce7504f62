use super::base::{CacheScope, ResultType};
use crate::common::{ServerCapabilities, object, wire};

object! {
    /// The result of `server/discover`. The name of the server is in `_meta`.
    #[derive(Debug, Default)]
    DiscoverResult {
        /// The supported revisions.
        supported_versions: Vec<String>,
        /// The capabilities.
        capabilities: ServerCapabilities,
        /// Instructions for the model.
        instructions?: String,
        /// How long the result may be cached, in milliseconds. Absent or negative means not at all.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        ttl_ms?: i64,
        /// The audience that may share the cached result. Absent means none.
        cache_scope?: CacheScope,
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
    /// Creates a result without instructions.
    new(supported_versions: Vec<String>, capabilities: ServerCapabilities)
}
