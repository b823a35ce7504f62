use std::path::{Path, PathBuf};

use super::GatewayFile;
use crate::{failure::Failure, verbs::gateway::api::ApiEntry};

/// The name of the API of `--openapi`.
const OPENAPI: &str = "openapi";

/// The source of a file: its path, and what options add to it.
#[derive(Clone, Debug, Default)]
pub(in crate::verbs::gateway) struct FileSource {
    pub(in crate::verbs::gateway) path: Option<PathBuf>,
    /// Tools of one line.
    pub(in crate::verbs::gateway) lines: Vec<String>,
    /// An OpenAPI document, and the URL of its API.
    pub(in crate::verbs::gateway) openapi: Option<(PathBuf, Option<String>)>,
}

impl FileSource {
    /// Reads the file and its documents. Documents that have not changed since `known` was read are taken from there. It blocks.
    pub(in crate::verbs::gateway) fn read(
        &self,
        known: Option<&GatewayFile>,
    ) -> Result<GatewayFile, Failure> {
        let mut file = match &self.path {
            Some(path) => GatewayFile::read(path, known)?,
            None => GatewayFile::default(),
        };
        file.add_lines(&self.lines)?;
        if let Some((document, base)) = &self.openapi {
            let entry = ApiEntry::unprefixed(document.clone(), base.clone());
            file.add_api(OPENAPI, entry, known)?;
        }
        Ok(file)
    }

    /// Returns the path that stands for all, for messages.
    pub(in crate::verbs::gateway) fn shown(&self) -> String {
        let path = self.path.as_deref().or(self.openapi.as_ref().map(|(path, _)| &**path));
        path.unwrap_or(Path::new("FILE")).display().to_string()
    }

    /// Returns whether there is a file that may change.
    pub(in crate::verbs::gateway) fn may_change(&self) -> bool {
        self.path.is_some() || self.openapi.is_some()
    }
}
