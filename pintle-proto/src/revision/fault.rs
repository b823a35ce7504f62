use pintle_types::{ErrorCode, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Revision;

impl Revision {
    /// Gives an error the code that a peer of this revision expects.
    ///
    /// A missing resource is `INVALID_PARAMS` with `data.uri`, or `RESOURCE_NOT_FOUND`; either becomes the code of this
    /// revision (RES-5, RES-6). Codes that the revision does not define become the nearest that it does.
    pub fn lower_error(self, method: &str, error: &mut RpcError) {
        let dialect = self.dialect();
        error.code = match error.code {
            ErrorCode::RESOURCE_NOT_FOUND => dialect.resource_not_found,
            ErrorCode::INVALID_PARAMS if method.starts_with("resources/") && names_a_uri(error) => {
                dialect.resource_not_found
            }
            ErrorCode::MISSING_CLIENT_CAPABILITY => dialect.missing_capability,
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => dialect.unsupported_version,
            ErrorCode::URL_ELICITATION_REQUIRED if !dialect.url_elicitation_error => {
                ErrorCode::INVALID_REQUEST
            }
            code => code,
        };
    }

    /// Gives an error from a peer of this revision its canonical code.
    ///
    /// Only a missing resource has two codes. It keeps the old code if `data.uri` is missing, because the canonical
    /// code alone would be ambiguous (RES-7: a caller accepts both).
    pub fn raise_error(self, method: &str, error: &mut RpcError) {
        if error.code == ErrorCode::RESOURCE_NOT_FOUND
            && self.dialect().resource_not_found == ErrorCode::RESOURCE_NOT_FOUND
            && method.starts_with("resources/")
            && names_a_uri(error)
        {
            error.code = Self::LATEST.dialect().resource_not_found;
        }
    }
}

fn names_a_uri(error: &RpcError) -> bool {
    #[derive(Deserialize)]
    struct UriData<'a> {
        #[serde(borrow)]
        uri: Option<&'a RawValue>,
    }
    error.data_as::<UriData<'_>>().is_some_and(|data| data.uri.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lowered(revision: &str, method: &str, mut error: RpcError) -> i32 {
        revision.parse::<Revision>().unwrap().lower_error(method, &mut error);
        error.code.0
    }

    #[test]
    fn a_missing_resource_in_each_revision() {
        let missing = || RpcError::invalid_params("no such resource").with_data(&json!({"uri": "file:///a"}));
        for (revision, code) in
            [("2024-11-05", -32002), ("2025-03-26", -32002), ("2025-06-18", -32002), ("2025-11-25", -32002)]
        {
            assert_eq!(lowered(revision, "resources/read", missing()), code);
            assert_eq!(lowered(revision, "tools/call", missing()), -32602, "not about a resource");
            assert_eq!(lowered(revision, "resources/read", RpcError::invalid_params("bad params")), -32602);
        }
        assert_eq!(lowered("2026-07-28", "resources/read", missing()), -32602);
        let old = || RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, "no such resource");
        assert_eq!(lowered("2026-07-28", "resources/read", old()), -32602, "never emitted there");
        assert_eq!(lowered("2025-06-18", "resources/read", old()), -32002);
    }

    #[test]
    fn codes_that_a_revision_lacks() {
        for (revision, capability, version, url) in [
            ("2024-11-05", -32600, -32602, -32600),
            ("2025-06-18", -32600, -32602, -32600),
            ("2025-11-25", -32600, -32602, -32042),
            ("2026-07-28", -32021, -32022, -32600),
        ] {
            let code = |code| lowered(revision, "tools/call", RpcError::new(code, ""));
            assert_eq!(code(ErrorCode::MISSING_CLIENT_CAPABILITY), capability);
            assert_eq!(code(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION), version);
            assert_eq!(code(ErrorCode::URL_ELICITATION_REQUIRED), url);
            assert_eq!(code(ErrorCode(7)), 7);
        }
    }

    #[test]
    fn an_old_code_is_raised_where_the_data_still_tells() {
        let revision: Revision = "2025-11-25".parse().unwrap();
        let mut error =
            RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, "").with_data(&json!({"uri": "file:///a"}));
        revision.raise_error("resources/read", &mut error);
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);

        let mut error = RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, "");
        revision.raise_error("resources/read", &mut error);
        assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    }
}
