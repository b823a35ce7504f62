use std::fmt;

/// Why something cannot be asked for in a form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FormError {
    form: String,
    field: Option<String>,
    said: String,
}

impl FormError {
    pub(super) fn new(form: &str, said: impl Into<String>) -> Self {
        Self { form: form.to_owned(), field: None, said: said.into() }
    }

    pub(super) fn of_field(form: &str, field: &str, said: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), ..Self::new(form, said) }
    }

    /// The field that does not fit, if it is one.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "`{}` is no form: field `{field}` {}", self.form, self.said),
            None => write!(f, "`{}` is no form: it {}", self.form, self.said),
        }
    }
}

impl std::error::Error for FormError {}
