//! The few words of shell that documents and suites use in pods: quotes, variables, pipes, `;`, `&&`, `||`, redirections of
//! output. Pure. What goes further (loops, substitutions) is refused, not guessed.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
}

/// One word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(Vec<Part>);

impl Word {
    /// The word with its variables filled in.
    pub(super) fn text(&self, value: impl Fn(&str) -> String) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(name) => value(name),
        });
        parts.collect()
    }

    fn push(&mut self, piece: &str) {
        match self.0.last_mut() {
            Some(Part::Text(text)) => text.push_str(piece),
            _ => self.0.push(Part::Text(piece.to_owned())),
        }
    }

    fn plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// A command with where its output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// `2>&1`.
    pub(super) errors_too: bool,
    /// `>/dev/null`.
    pub(super) silent: bool,
    /// `2>/dev/null`.
    pub(super) no_errors: bool,
}

/// When a pipeline runs, by how the one before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Success,
    Failure,
}

/// Commands whose output goes into the next one's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) when: When,
    pub(super) pipeline: Vec<Command>,
}

/// Why a line is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the sandbox's shell does not understand {0}; it has words, quotes, variables, pipes, `;`, `&&` and `||`; an image `process:<command>` runs a real one"
)]
pub(super) struct Unsupported(String);

const RESERVED: [&str; 8] = ["while", "until", "for", "if", "case", "function", "{", "("];

#[derive(Debug, PartialEq)]
enum Token {
    Word(Word),
    Pipe,
    Always,
    And,
    Or,
    ErrorsToo,
    Silent,
    NoErrors,
}

/// Reads a line or a small script.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, Unsupported> {
    let mut items = Vec::new();
    let mut when = When::Always;
    let mut pipeline = Vec::new();
    let mut command = Command::default();
    let missing = || Unsupported("a command that is missing".to_owned());
    for token in tokens(text)?.into_iter().chain([Token::Always]) {
        match token {
            Token::Word(word) => {
                if command.words.is_empty()
                    && let Some(reserved) = word.plain().filter(|word| RESERVED.contains(word))
                {
                    return Err(Unsupported(format!("`{reserved}`")));
                }
                command.words.push(word);
            }
            Token::ErrorsToo => command.errors_too = true,
            Token::Silent => command.silent = true,
            Token::NoErrors => command.no_errors = true,
            Token::Pipe if command.words.is_empty() => return Err(missing()),
            Token::Pipe => pipeline.push(std::mem::take(&mut command)),
            Token::Always | Token::And | Token::Or => {
                let next = match token {
                    Token::And => When::Success,
                    Token::Or => When::Failure,
                    _ => When::Always,
                };
                if !command.words.is_empty() {
                    pipeline.push(std::mem::take(&mut command));
                    items.push(Item { when, pipeline: std::mem::take(&mut pipeline) });
                } else if !pipeline.is_empty() || next != When::Always || when != When::Always {
                    return Err(missing());
                }
                when = next;
            }
        }
    }
    Ok(items)
}

fn tokens(text: &str) -> Result<Vec<Token>, Unsupported> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if letter == '\n' {
            tokens.push(Token::Always);
            rest = &rest[1..];
        } else if letter.is_whitespace() {
            rest = &rest[letter.len_utf8()..];
        } else if letter == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if let Some((token, after)) = operator(rest)? {
            tokens.push(token);
            rest = after;
        } else {
            let (word, after) = word(rest)?;
            tokens.push(Token::Word(word));
            rest = after;
        }
    }
    Ok(tokens)
}

fn operator(text: &str) -> Result<Option<(Token, &str)>, Unsupported> {
    const NULL: &str = "/dev/null";
    let to_null = |after: &str| after.trim_start_matches(' ').starts_with(NULL);
    let after_null = |after: &'_ str| after.len() - after.trim_start_matches(' ').len() + NULL.len();
    if let Some(after) = text.strip_prefix("2>&1") {
        return Ok(Some((Token::ErrorsToo, after)));
    }
    for (sign, token) in [("2>", Token::NoErrors), (">", Token::Silent)] {
        if let Some(after) = text.strip_prefix(sign) {
            return match to_null(after) {
                true => Ok(Some((token, &after[after_null(after)..]))),
                false => Err(Unsupported("redirections to files".to_owned())),
            };
        }
    }
    for (sign, token) in [("&&", Token::And), ("||", Token::Or), ("|", Token::Pipe), (";", Token::Always)] {
        if let Some(after) = text.strip_prefix(sign) {
            return Ok(Some((token, after)));
        }
    }
    match text.chars().next() {
        Some(sign @ ('<' | '&' | '`' | '(' | ')')) => Err(Unsupported(format!("`{sign}`"))),
        _ => Ok(None),
    }
}

fn word(text: &str) -> Result<(Word, &str), Unsupported> {
    let open = || Unsupported("a quote without its end".to_owned());
    let mut word = Word::default();
    let mut rest = text;
    let mut quoted = false;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = match letter {
            '"' => {
                quoted = !quoted;
                word.push("");
                after
            }
            '\'' if !quoted => {
                let (inside, after) = after.split_once('\'').ok_or_else(open)?;
                word.push(inside);
                after
            }
            '\\' => match after.chars().next() {
                Some(escaped) if !quoted || matches!(escaped, '"' | '\\' | '$' | '`') => {
                    word.push(escaped.encode_utf8(&mut [0; 4]));
                    &after[escaped.len_utf8()..]
                }
                _ => {
                    word.push("\\");
                    after
                }
            },
            '$' => {
                let (name, after) = variable(after)?;
                match name {
                    Some(name) => word.0.push(Part::Variable(name.to_owned())),
                    None => word.push("$"),
                }
                after
            }
            letter if !quoted && (letter.is_whitespace() || "|;&<>()`".contains(letter)) => {
                return Ok((word, rest));
            }
            letter => {
                word.push(letter.encode_utf8(&mut [0; 4]));
                after
            }
        };
    }
    if quoted { Err(open()) } else { Ok((word, rest)) }
}

/// The name after a `$`, if there is one, and what follows it.
fn variable(after: &str) -> Result<(Option<&str>, &str), Unsupported> {
    if after.starts_with('(') {
        return Err(Unsupported("`$(`".to_owned()));
    }
    if let Some(inside) = after.strip_prefix('{') {
        return match inside.split_once('}') {
            Some((name, after)) if is_name(name) => Ok((Some(name), after)),
            _ => Err(Unsupported("`${` beyond `${NAME}`".to_owned())),
        };
    }
    let end =
        after.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(after.len());
    let name = &after[..end];
    Ok(if is_name(name) { (Some(name), &after[end..]) } else { (None, after) })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let value = |name: &str| format!("<{name}>");
        let items = parse(text).unwrap();
        let commands = items.iter().flat_map(|item| &item.pipeline);
        commands.map(|command| command.words.iter().map(|word| word.text(value)).collect()).collect()
    }

    #[test]
    fn words_are_read_as_a_shell_reads_them() {
        for (text, want) in [
            ("echo hi", vec![vec!["echo", "hi"]]),
            ("echo  'a b'\"$X c\"d", vec![vec!["echo", "a b<X> cd"]]),
            ("echo hi | nc -w 2 web 42 2>&1", vec![vec!["echo", "hi"], vec!["nc", "-w", "2", "web", "42"]]),
            ("a \\$x; b ${Y}z\n# no\nc \"\" $", vec![vec!["a", "$x"], vec!["b", "<Y>z"], vec!["c", "", "$"]]),
        ] {
            assert_eq!(words(text), want, "{text}");
        }
    }

    #[test]
    fn pipelines_know_when_they_run_and_where_output_goes() {
        let items = parse("a || b 2>/dev/null && c > /dev/null; d 2>&1").unwrap();
        let when: Vec<_> = items.iter().map(|item| item.when).collect();
        assert_eq!(when, [When::Always, When::Failure, When::Success, When::Always]);
        assert!(
            items[1].pipeline[0].no_errors && items[2].pipeline[0].silent && items[3].pipeline[0].errors_too
        );
    }

    #[test]
    fn what_goes_further_is_refused() {
        for text in ["while :; do x; done", "echo $(date)", "a > file", "a & b", "echo 'x", "| a", "a &&"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
