use super::client::ElicitUrlParams;
use crate::common::{ClientCapabilities, object};

object! {
    /// The `data` of [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`](crate::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION).
    #[derive(Debug, Default)]
    UnsupportedVersionData {
        /// The revisions that the server supports.
        supported: Vec<String>,
        /// The requested revision. Required, though some servers omit it.
        requested?: String,
        ..
    }
}

impl UnsupportedVersionData {
    /// Creates the data from the requested and the supported revisions.
    pub fn new(supported: Vec<String>, requested: impl Into<String>) -> Self {
        Self { supported, requested: Some(requested.into()), ..Self::default() }
    }
}

object! {
    /// The `data` of [`ErrorCode::MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY).
    #[derive(Debug, Default)]
    MissingCapabilityData {
        /// The capabilities that the client would need.
        required_capabilities: ClientCapabilities,
        ..
    }
    /// Creates the data.
    new(required_capabilities: ClientCapabilities)
}

object! {
    /// The `data` of [`ErrorCode::URL_ELICITATION_REQUIRED`](crate::ErrorCode::URL_ELICITATION_REQUIRED).
    #[derive(Debug, Default)]
    UrlElicitationRequiredData {
        /// The URLs that the user has to open first.
        elicitations: Vec<ElicitUrlParams>,
        ..
    }
    /// Creates the data.
    new(elicitations: Vec<ElicitUrlParams>)
}

object! {
    /// The `data` of an error about a resource that does not exist.
    #[derive(Debug, Default)]
    ResourceNotFoundData {
        /// The URI.
        uri: String,
        ..
    }
    /// Creates the data for `uri`.
    new(uri: impl Into<String>)
}
