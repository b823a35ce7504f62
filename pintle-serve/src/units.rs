use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

/// Reads a duration such as `500ms`, `10s`, `2m` or `1h`.
///
/// # Errors
///
/// It is written in another way. The error says how.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(pintle_serve::duration("1.5s"), Ok(Duration::from_millis(1500)));
/// assert!(pintle_serve::duration("5 moons").is_err());
/// ```
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write it as `500ms`, `10s` or `2m`".to_owned();
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

/// Reads a duration of a file.
pub(crate) fn read_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}
