use crate::url::{self, has_dots};

/// The path of an operation, with places for its parameters.
#[derive(Debug, PartialEq)]
pub(crate) struct PathTemplate {
    pub(crate) pieces: Vec<Piece>,
    /// The query behind the path, by which some documents tell operations apart.
    pub(crate) query: Option<String>,
}

/// A part of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// Text, as it is sent.
    Text(String),
    /// The value of a parameter.
    Parameter(String),
}

impl PathTemplate {
    /// Parses a path.
    ///
    /// # Errors
    ///
    /// It is none that a value can be put into safely.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        if !path.starts_with('/') {
            return Err("its path does not begin with `/`".to_owned());
        }
        // A fragment tells operations apart, and is not sent.
        let path = path.split('#').next().unwrap_or_default();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        if query.is_some_and(|query| query.contains(['{', '}'])) {
            return Err("its path has a query with places; declare query parameters instead".to_owned());
        }
        let query = query.filter(|query| !query.is_empty()).map(literal).transpose()?;
        let (mut pieces, mut rest, mut texts) = (Vec::new(), path, Vec::new());
        while let Some((text, behind)) = rest.split_once('{') {
            let Some((name, after)) = behind.split_once('}') else {
                return Err("its path has a `{` without `}`".to_owned());
            };
            if name.is_empty() || name.contains(['{', '/']) {
                return Err("its path has a place without a name".to_owned());
            }
            texts.push(text);
            pieces.push(Piece::Text(literal(text)?));
            pieces.push(Piece::Parameter(name.to_owned()));
            rest = after;
        }
        texts.push(rest);
        pieces.push(Piece::Text(literal(rest)?));
        // Beside a place, a dot is no segment.
        if has_dots(&texts.join("x")) {
            return Err("its path has a segment `.` or `..`".to_owned());
        }
        Ok(Self { pieces, query })
    }

    /// Returns the names of its places.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }
}

/// Returns text of a path as it is sent.
fn literal(text: &str) -> Result<String, String> {
    url::literal(text)
        .map_err(|wrong| format!("its path has `{}`, which cannot be in one", wrong.escape_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["pets", "/a?b={c}", "/{", "/{}", "/{a/b}", "/}", "/../a", "/a\\b", "/a\nb"] {
            assert!(PathTemplate::parse(path).is_err(), "{path}");
        }
        let parsed = PathTemplate::parse("/a b/{id}.json").unwrap();
        assert_eq!(parsed.names().collect::<Vec<_>>(), ["id"]);
        assert_eq!(parsed.pieces[0], Piece::Text("/a%20b/".to_owned()));
        let parsed = PathTemplate::parse("/a?b=c d&e#f?g").unwrap();
        assert_eq!(
            (&parsed.pieces[..], parsed.query.as_deref()),
            (&[Piece::Text("/a".to_owned())][..], Some("b=c%20d&e"))
        );
        assert_eq!(PathTemplate::parse("/a/{id}.{kind}").unwrap().names().count(), 2);
    }
}
