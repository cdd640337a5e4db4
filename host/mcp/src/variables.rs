//! `${NAME}` in a configuration: the value of an environment variable of this process.

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// The name of a variable, and the text to use if it is not set.
    Variable(&'a str, Option<&'a str>),
}

/// Splits a text at its variables: `${NAME}` and `${NAME:-default}`.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, inside) = (&rest[..start], &rest[start + 2..]);
        let Some(end) = inside.find('}') else {
            return Err("a `${` has no `}`".to_owned());
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!(
                "`${{{name}}}` does not name an environment variable"
            ));
        }
        pieces.push(Piece::Variable(name, default));
        rest = &inside[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Replaces the variables in a text. The error names the variable that is missing, and never a value.
pub(crate) fn expand(text: &str) -> Result<String, String> {
    let mut expanded = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => expanded.push_str(text),
            Piece::Variable(name, default) => match (std::env::var(name), default) {
                (Ok(value), _) => expanded.push_str(&value),
                (Err(_), Some(default)) => expanded.push_str(default),
                (Err(_), None) => {
                    return Err(format!(
                        "the environment variable `{name}` is not set; set it where rlf-host is started"
                    ));
                }
            },
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_its_variables() {
        assert_eq!(
            pieces("a ${B} ${C:-d}").unwrap(),
            [
                Piece::Text("a "),
                Piece::Variable("B", None),
                Piece::Text(" "),
                Piece::Variable("C", Some("d")),
            ]
        );
        assert_eq!(pieces("$5 and }").unwrap(), [Piece::Text("$5 and }")]);
        assert!(pieces("${A").unwrap_err().contains("no `}`"));
        assert!(pieces("${A B}").unwrap_err().contains("`${A B}`"));
    }

    #[test]
    fn a_variable_that_is_missing_is_named() {
        assert_eq!(expand("${RLF_NO_SUCH:-x}y").unwrap(), "xy");
        assert!(
            expand("${RLF_NO_SUCH}")
                .unwrap_err()
                .contains("`RLF_NO_SUCH` is not set")
        );
        assert_eq!(expand("${PATH}").unwrap(), std::env::var("PATH").unwrap());
    }
}
