/// Returns the candidate that was probably meant: at most a third of its letters differ.
pub(crate) fn near<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let short = |word: &str| word.to_lowercase().chars().take(60).collect::<String>();
    let typed = short(typed);
    let distances = candidates.map(|name| (strsim::osa_distance(&short(name), &typed), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.chars().count().div_ceil(3)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
        let names = ["tide", "season", "berth"];
        assert_eq!(near("tdie", names.into_iter()), Some("tide"));
        assert_eq!(near("Season", names.into_iter()), Some("season"));
        assert_eq!(near("weather", names.into_iter()), None);
        assert_eq!(near("x", std::iter::empty()), None);
    }
}
