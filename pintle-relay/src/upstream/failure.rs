use pintle::{
    Error,
    types::{ErrorCode, RpcError, schema::MissingCapabilityData},
};

use super::pool::RETRY_AFTER_MS;

/// The reason why a call has no outcome.
pub(crate) enum Failure {
    /// The error for the client.
    Error(RpcError),
    /// The connection was lost. The error for the client, if the call is not repeated.
    Lost(RpcError),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error(error) | Failure::Lost(error) => error,
        }
    }
}

impl Failure {
    /// Returns the failure of a call to a server of this name. An error of the server is unchanged.
    pub(crate) fn of(error: Error, backend: impl Fn() -> String) -> Self {
        match error {
            // The session era has no code of its own for it.
            Error::Rpc(mut error)
                if error.code == ErrorCode::INVALID_REQUEST
                    && error.data_as::<MissingCapabilityData>().is_some() =>
            {
                error.code = ErrorCode::MISSING_CLIENT_CAPABILITY;
                Self::Error(error)
            }
            Error::Rpc(error) => Self::Error(error),
            Error::Failed(failed) if failed.is_local => {
                Self::Error(RpcError::overloaded(failed.message, RETRY_AFTER_MS))
            }
            Error::Failed(failed) if failed.is_too_long => Self::Error(too_long(&backend())),
            error => {
                let lost = matches!(error, Error::Closed(_));
                let helps = match &error {
                    Error::Closed(_) | Error::Timeout(_) | Error::Io(_) => true,
                    // It would be refused again.
                    Error::Failed(failed) => failed.status.is_none_or(|status| {
                        !(300..500).contains(&status) || matches!(status, 408 | 425 | 429)
                    }),
                    _ => false,
                };
                let later = if helps { "; call again later" } else { "" };
                let error = RpcError::internal(format!(
                    "`{}`, the server behind this one, did not answer: {error}{later}",
                    backend()
                ));
                if lost { Self::Lost(error) } else { Self::Error(error) }
            }
        }
    }
}

/// Returns the error of an answer that is longer than a message may be. It does not name the setting: clients cannot change it.
pub(crate) fn too_long(backend: &str) -> RpcError {
    RpcError::internal(format!(
        "the answer of `{backend}`, the server behind this one, is longer than what is passed on: ask for less, or raise the limit of \
         messages here"
    ))
}

/// Returns the error of a state that another server behind has made.
pub(crate) fn replaced() -> RpcError {
    RpcError::invalid_params(
        "`requestState` is of another version of the server behind this one: start the call again",
    )
}
