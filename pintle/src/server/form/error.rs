use std::fmt;

/// The reason why a type or a field cannot be part of a form.
///
/// ```
/// use pintle::server::Form;
///
/// let error = Form::of::<Vec<String>>().unwrap_err();
/// assert_eq!(error.field(), None);
/// assert!(error.to_string().contains("cannot be a form"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FormError {
    form: String,
    field: Option<String>,
    reason: String,
}

impl FormError {
    pub(super) fn new(form: &str, reason: impl Into<String>) -> Self {
        Self { form: form.to_owned(), field: None, reason: reason.into() }
    }

    pub(super) fn of_field(form: &str, field: &str, reason: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), ..Self::new(form, reason) }
    }

    /// Returns the name of the field, if one is the reason.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "`{}` cannot be a form: field `{field}` {}", self.form, self.reason),
            None => write!(f, "`{}` cannot be a form: it {}", self.form, self.reason),
        }
    }
}

impl std::error::Error for FormError {}
