use std::fmt;

/// Why something that was asked for is not as it should be.
#[derive(Debug)]
pub struct Wrong(String);

impl Wrong {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

impl From<pintle::Error> for Wrong {
    fn from(error: pintle::Error) -> Self {
        Self::new(error)
    }
}
