use serde::{Serialize, ser::Error as _};

use super::{ObjectWriter, RawObject};

/// A builder of a [`RawObject`], made by [`RawObject::builder`]. Each value is printed in place.
#[must_use = "a builder does nothing until it is finished"]
pub struct RawObjectBuilder(ObjectWriter);

impl RawObject {
    /// Builds an object member by member, with an initial capacity in bytes.
    ///
    /// ```
    /// use pintle_types::RawObject;
    ///
    /// let params = RawObject::builder(64).text("name", "add").member("n", &[1, 2])?.finish()?;
    /// assert_eq!(params.as_str(), r#"{"name":"add","n":[1,2]}"#);
    /// assert_eq!(params.get("n"), Some("[1,2]"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn builder(capacity: usize) -> RawObjectBuilder {
        RawObjectBuilder(ObjectWriter::with_capacity(capacity))
    }
}

impl RawObjectBuilder {
    /// Adds a member that is a string.
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.0.begin_named(name);
        self.0.write_text(text);
        self.0.end();
        self
    }

    /// Adds a member.
    ///
    /// # Errors
    ///
    /// The value cannot be printed.
    pub fn member<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Result<Self, serde_json::Error> {
        self.0.begin_named(name);
        self.0.print(value)?;
        self.0.end();
        Ok(self)
    }

    /// Returns the object.
    ///
    /// # Errors
    ///
    /// A name occurs twice.
    pub fn finish(self) -> Result<RawObject, serde_json::Error> {
        match self.0.repeated() {
            Some(name) => Err(serde_json::Error::custom(format_args!("the member `{name}` occurs twice"))),
            None => Ok(self.0.finish()),
        }
    }
}

impl std::fmt::Debug for RawObjectBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawObjectBuilder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn what_is_printed_is_as_if_it_was_read() {
        let printing = RawObject::builder(1).member("a", "\"\n").unwrap().member("b", &Some(1.5)).unwrap();
        let printed = printing.text("c", "\"\n").finish().unwrap();
        assert_eq!(printed.as_str(), r#"{"a":"\"\n","b":1.5,"c":"\"\n"}"#);
        let read: RawObject = printed.as_str().parse().unwrap();
        assert!(printed.iter().eq(read.iter()), "{printed:?}");
        assert_eq!(RawObject::builder(0).finish().unwrap(), RawObject::empty());
    }

    #[test]
    fn a_name_may_have_any_character() {
        let printing = RawObject::builder(9).text("a\"\n", "b").member("c\\", &1).unwrap();
        let printed = printing.finish().unwrap();
        assert_eq!(printed.as_str(), r#"{"a\"\n":"b","c\\":1}"#);
        assert_eq!((printed.get("a\"\n"), printed.get("c\\")), (Some("\"b\""), Some("1")));
    }

    #[test]
    fn no_line_break_is_passed_on() {
        let broken = RawValue::from_string("[1,\r\n2]".to_owned()).unwrap();
        let printed = RawObject::builder(9).member("a", &broken).unwrap().finish().unwrap();
        assert_eq!(printed.as_str(), r#"{"a":[1,  2]}"#);
    }

    #[test]
    fn what_cannot_be_printed_is_refused() {
        let keyed_by_pairs = HashMap::from([((1, 2), 3)]);
        assert!(RawObject::builder(9).member("a", &keyed_by_pairs).is_err());
        let twice = RawObject::builder(9).member("a", &1).unwrap().member("a", &2).unwrap();
        assert_eq!(twice.finish().unwrap_err().to_string(), "the member `a` occurs twice");
    }
}
