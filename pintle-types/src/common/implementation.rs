use super::{object, wire::words};

object! {
    /// The name and version of a client or a server.
    ///
    /// Self-reported: for display and logs, never for decisions.
    ///
    /// ```
    /// use pintle_types::schema::Implementation;
    ///
    /// let mut adder = Implementation::new("adder", "1.0.0");
    /// adder.title = Some("The adder".into());
    /// assert_eq!(serde_json::to_string(&adder)?, r#"{"name":"adder","title":"The adder","version":"1.0.0"}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Default)]
    Implementation {
        /// The name for programs.
        name: String,
        /// The name to display.
        title?: String,
        /// The version.
        version: String,
        /// The description.
        description?: String,
        /// The URL of a website.
        website_url?: String,
        /// Icons.
        icons?: Vec<Icon>,
        ..
    }
    /// Creates an implementation from its name and version.
    new(name: impl Into<String>, version: impl Into<String>)
}

object! {
    /// An icon that a user interface may show.
    ///
    /// Whoever renders it accepts only `https:` and `data:` sources and fetches without credentials.
    #[derive(Debug, Default)]
    Icon {
        /// The URI of the icon, of scheme `https:` or `data:`.
        src: String,
        /// The media type, if the source has none or a wrong one.
        mime_type?: String,
        /// Suitable sizes, such as `48x48` or `any`.
        sizes?: Vec<String>,
        /// The background of the icon. Absent means any.
        theme?: IconTheme,
        ..
    }
    /// Creates an icon for any size and background.
    new(src: impl Into<String>)
}

words! {
    /// The background for which an icon is designed.
    IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
