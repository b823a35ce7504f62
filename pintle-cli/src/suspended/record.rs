use pintle::client::SuspendedCall;
use serde::{Deserialize, Serialize};

use crate::targets::TargetReference;

/// The version of the file's layout. Others are not read.
const VERSION: u32 = 1;

/// The contents of a file: how the server is reached, without credentials, and the call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SuspendedRecord {
    version: u32,
    pub(crate) target: TargetReference,
    pub(crate) call: SuspendedCall,
    /// The name of the server, as it calls itself.
    pub(crate) server: String,
}

impl SuspendedRecord {
    pub(crate) fn new(target: TargetReference, call: SuspendedCall, server: String) -> Self {
        Self { version: VERSION, target, call, server }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(bytes).ok()?;
        (record.version == VERSION).then_some(record)
    }
}
