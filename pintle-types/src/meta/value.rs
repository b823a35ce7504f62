use serde::{Serialize, de::DeserializeOwned};

use super::{Meta, MetaError};

/// A typed member of `_meta`, of an application or an extension: of a tool, a resource, contents, a request or a result.
///
/// A type that keeps members which later versions add has a map with `#[serde(flatten)]`.
///
/// ```
/// use pintle_types::{Meta, MetaValue};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Deserialize, PartialEq, Serialize)]
/// struct Price {
///     cents: u32,
/// }
///
/// impl MetaValue for Price {
///     const KEY: &'static str = "com.example/price";
/// }
///
/// let mut meta = Meta::new();
/// meta.set_value(&Price { cents: 250 })?;
/// assert_eq!(serde_json::to_string(&meta)?, r#"{"com.example/price":{"cents":250}}"#);
/// assert_eq!(meta.value::<Price>()?, Some(Price { cents: 250 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait MetaValue: Serialize + DeserializeOwned {
    /// The key: a reversed domain name as the prefix, a slash and a name.
    const KEY: &'static str;
}

impl Meta {
    /// Returns a typed member. `None` if the key is absent or `null`.
    ///
    /// # Errors
    ///
    /// The value is not a `T`. The error names the key.
    pub fn value<T: MetaValue>(&self) -> Result<Option<T>, MetaError> {
        self.read(T::KEY)
    }

    /// Sets a typed member. Others stay as they are.
    ///
    /// # Errors
    ///
    /// The value cannot be printed as JSON.
    pub fn set_value<T: MetaValue>(&mut self, value: &T) -> Result<(), MetaError> {
        let printed = serde_json::to_value(value);
        let value = printed.map_err(|error| MetaError { key: T::KEY, reason: error.to_string() })?;
        self.insert(T::KEY, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::JsonObject;

    #[derive(Debug, Deserialize, Serialize)]
    struct Price {
        cents: u32,
        #[serde(flatten)]
        extra: JsonObject,
    }

    impl MetaValue for Price {
        const KEY: &'static str = "com.example/price";
    }

    #[test]
    fn unknown_members_survive_and_a_value_that_does_not_fit_is_named() {
        let mut meta: Meta = serde_json::from_value(json!({
            "com.example/price": {"cents": 1, "later": {"tax": [19]}}, "com.example/other": [1],
        }))
        .unwrap();
        let mut price: Price = meta.value().unwrap().unwrap();
        price.cents = 2;
        meta.set_value(&price).unwrap();
        assert_eq!(
            serde_json::to_value(&meta).unwrap(),
            json!({"com.example/price": {"cents": 2, "later": {"tax": [19]}}, "com.example/other": [1]})
        );
        meta.insert(Price::KEY, "free");
        assert_eq!(meta.value::<Price>().unwrap_err().key, "com.example/price");
        meta.remove(Price::KEY);
        assert!(meta.value::<Price>().unwrap().is_none());
    }
}
