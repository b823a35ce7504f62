use super::GatewayFile;

/// The limit of changes that are named.
const MAX_NAMED: usize = 10;

impl GatewayFile {
    /// Returns what is different in another file, by names and without values.
    pub(in crate::verbs::gateway) fn changes(&self, next: &Self) -> String {
        let mut changes = Vec::new();
        let backends = |file: &Self| file.backends().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let (before, after) = (backends(self), backends(next));
        for name in &before {
            match next.backend(name) {
                None => changes.push(format!("`{name}` is removed")),
                after if after != self.backend(name) => changes.push(format!("`{name}` is another")),
                Some(_) => {}
            }
        }
        let new = after.iter().filter(|name| self.backend(name).is_none());
        changes.extend(new.map(|name| format!("`{name}` is new")));
        let others = [
            ("rules", self.rules != next.rules || self.default != next.default),
            ("virtual servers", self.servers != next.servers),
            ("tools", self.tools != next.tools),
            ("workers", self.workers != next.workers),
            ("prompts", self.prompts != next.prompts),
            ("resources", self.resources != next.resources),
        ];
        changes
            .extend(others.iter().filter(|(_, is_other)| *is_other).map(|(kind, _)| format!("other {kind}")));
        let left_out = changes.len().saturating_sub(MAX_NAMED);
        changes.truncate(MAX_NAMED);
        if left_out > 0 {
            changes.push(format!("and {left_out} more"));
        }
        match changes.is_empty() {
            true => "other settings".to_owned(),
            false => changes.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_named_without_values() {
        let file = |text: &str| GatewayFile::parse(text).unwrap();
        let old = file("[targets.a]\nserver = \"demo\"\n[targets.b]\nserver = \"demo\"\n");
        let new = "default = \"deny\"\n[targets.b]\nserver = \"demo\"\nhide = [\"s3cret\"]\n[targets.c]\nserver = \"demo\"\n";
        assert_eq!(old.changes(&file(new)), "`a` is removed, `b` is another, `c` is new, other rules");
        assert_eq!(old.changes(&old), "other settings");
    }
}
