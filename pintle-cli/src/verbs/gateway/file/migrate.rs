use std::{fs, path::Path};

use serde_json::json;

use super::{
    GatewayFile,
    disk::read_limited,
    text::{FileText, VERSION},
};
use crate::{failure::Failure, output::Output, storage::write_private};

impl GatewayFile {
    /// Rewrites a file of an earlier version as one of the current version. Its comments stay, and it means the same.
    pub(in crate::verbs::gateway) fn migrate(path: &Path, output: &Output) -> Result<(), Failure> {
        let shown = path.display();
        let wrong = |reason: String| {
            let message = format!("`{shown}` cannot be migrated: {reason}");
            Failure::usage(message, format!("pintle gateway {shown} --check"))
        };
        let failed = |error: std::io::Error| wrong(error.to_string());
        // A link stays one.
        let place = fs::canonicalize(path).map_err(failed)?;
        let folder = place.parent().unwrap_or(Path::new(""));
        let (metadata, text) = read_limited(&place).map_err(failed)?;
        let before = FileText::of(&place, &text);
        let mut expected = Self::decode(&before, folder).map_err(wrong)?;
        let is_old = expected.version.is_none();
        if is_old {
            let text = before.with_version();
            expected.version = Some(VERSION);
            if Self::decode(&FileText::of(&place, &text), folder) != Ok(expected) {
                return Err(wrong(format!(
                    "it has no line for the version: write `version` {VERSION} by hand"
                )));
            }
            write_private(&place, text.as_bytes())
                .and_then(|()| fs::set_permissions(&place, metadata.permissions()))
                .map_err(failed)?;
        }
        output.result(&json!({ "path": path, "migrated": is_old }), |text| {
            text.line(match is_old {
                true => format!("{shown}: it has version {VERSION} now"),
                false => format!("{shown}: it has version {VERSION} already"),
            });
        })
    }
}
