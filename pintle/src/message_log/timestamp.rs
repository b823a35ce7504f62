//! Times in ISO 8601, as message logs, tasks and resources have them.
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//! use pintle::message_log::timestamp::iso8601_micros;
//!
//! let time = UNIX_EPOCH + Duration::from_secs(951_782_400);
//! assert_eq!(iso8601_micros(time).as_deref(), Some("2000-02-29T00:00:00.000000Z"));
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

/// Formats a time as ISO 8601 in UTC, with seconds. Returns `None` before 1970 and after 9999.
#[cfg(feature = "server")]
pub fn iso8601(time: SystemTime) -> Option<String> {
    Some(seconds(time)? + "Z")
}

/// Formats a time as ISO 8601 in UTC, with microseconds. Returns `None` before 1970 and after 9999.
pub fn iso8601_micros(time: SystemTime) -> Option<String> {
    let micros = time.duration_since(UNIX_EPOCH).ok()?.subsec_micros();
    Some(format!("{}.{micros:06}Z", seconds(time)?))
}

fn seconds(time: SystemTime) -> Option<String> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days)?;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"))
}

/// Returns the date that is `days` days after 1 January 1970.
///
/// Years are counted from March, so that a leap day is the last of its year; 400 of them have 146,097 days.
fn civil(days: u64) -> Option<(u64, u64, u64)> {
    const TO_1970: u64 = 719_468;
    let days = days.checked_add(TO_1970)?;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Some((era * 400 + year + next, month, day)).filter(|(year, ..)| *year <= 9999)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, Some("1970-01-01T00:00:00Z")),
            (951_782_399, Some("2000-02-28T23:59:59Z")),
            (951_782_400, Some("2000-02-29T00:00:00Z")),
            (951_868_800, Some("2000-03-01T00:00:00Z")),
            (1_735_689_599, Some("2024-12-31T23:59:59Z")),
            (4_107_542_400, Some("2100-03-01T00:00:00Z")),
            (253_402_300_799, Some("9999-12-31T23:59:59Z")),
            (253_402_300_800, None),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(super::seconds(time).map(|text| text + "Z").as_deref(), text);
        }
        assert_eq!(iso8601_micros(UNIX_EPOCH - Duration::from_secs(1)), None);
        let time = UNIX_EPOCH + Duration::from_micros(1_500_042);
        assert_eq!(iso8601_micros(time).as_deref(), Some("1970-01-01T00:00:01.500042Z"));
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = (1969, 12, 31);
        for days in 0..200_000 {
            let date @ (year, month, day) = civil(days).unwrap();
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            assert!(
                (1..=12).contains(&month) && (month, day) <= (12, 31) && (leap || (month, day) != (2, 29))
            );
            assert!(before < date, "{date:?}");
            before = date;
        }
    }
}
