//! Patterns are written for Go's RE2; this reads them into our engine, and keeps what was compiled.

use regex::Regex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// Patterns are few; the bound only keeps a hostile CRD from growing the cache.
const KEPT: usize = 256;
/// Most bytes of a pattern that is kept.
const KEPT_MOST: usize = 1 << 20;
/// Most bytes of a pattern that is used once.
pub(crate) const PASSING_MOST: usize = 256 << 10;

type Cache = Mutex<HashMap<String, Arc<Regex>>>;

static COMPILED: LazyLock<Cache> = LazyLock::new(Cache::default);

/// The compiled pattern, or why it can't be one.
pub(crate) fn compiled(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Ok(cache) = COMPILED.lock()
        && let Some(known) = cache.get(pattern)
    {
        return Ok(Arc::clone(known));
    }
    let regex = Arc::new(built(pattern, KEPT_MOST)?);
    if let Ok(mut cache) = COMPILED.lock() {
        if cache.len() >= KEPT {
            cache.clear();
        }
        cache.insert(pattern.to_owned(), Arc::clone(&regex));
    }
    Ok(regex)
}

/// A pattern that takes at most so many bytes, or why it can't be one.
pub(crate) fn built(pattern: &str, most: usize) -> Result<Regex, String> {
    let builder = regex::RegexBuilder::new(&translated(pattern)).size_limit(most).build();
    builder.map_err(|error| words(pattern, &error))
}

/// What is wrong with a pattern, in Go's words as far as they are common.
fn words(pattern: &str, error: &regex::Error) -> String {
    let said = error.to_string();
    let known = [
        ("unclosed group", "missing closing )"),
        ("unopened group", "unexpected )"),
        ("unclosed character class", "missing closing ]"),
        ("repetition operator missing expression", "missing argument to repetition operator"),
        ("look-around", "invalid or unsupported Perl syntax"),
        ("backreferences", "invalid escape sequence"),
    ];
    let found = known.iter().find(|(ours, _)| said.contains(ours));
    let why = found.map_or_else(|| said.lines().last().unwrap_or_default(), |(_, theirs)| theirs);
    format!("error parsing regexp: {why}: `{pattern}`")
}

/// Go's classes are ASCII, its `[` inside a class is a bracket, and a brace that repeats nothing is a brace.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut characters = pattern.char_indices().peekable();
    let mut in_class = false;
    while let Some((at, character)) = characters.next() {
        let rest = &pattern[at + character.len_utf8()..];
        match character {
            '\\' => {
                let Some((_, escaped)) = characters.next() else {
                    out.push('\\');
                    break;
                };
                match escaped {
                    'd' => out.push_str("[0-9]"),
                    'D' => out.push_str("[^0-9]"),
                    'w' => out.push_str("[0-9A-Za-z_]"),
                    'W' => out.push_str("[^0-9A-Za-z_]"),
                    's' => out.push_str(r"[\t\n\x0C\r ]"),
                    'S' => out.push_str(r"[^\t\n\x0C\r ]"),
                    'b' if !in_class => out.push_str(r"(?-u:\b)"),
                    'B' if !in_class => out.push_str(r"(?-u:\B)"),
                    other => out.extend(['\\', other]),
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if let Some((_, negation)) = characters.next_if(|(_, next)| *next == '^') {
                    out.push(negation);
                }
                // A bracket that comes first does not end the class.
                if characters.next_if(|(_, next)| *next == ']').is_some() {
                    out.push_str(r"\]");
                }
            }
            '[' if rest.starts_with(':') => {
                let end = rest.find(":]").map_or(0, |end| end + 2);
                out.push('[');
                out.push_str(&rest[..end]);
                while characters.next_if(|(next, _)| *next < at + 1 + end).is_some() {}
            }
            '[' | '&' | '~' if in_class => out.extend(['\\', character]),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '{' if !in_class && !repeats(rest) => out.push_str(r"\{"),
            other => out.push(other),
        }
    }
    out
}

/// Is what follows a brace `3}`, `3,}` or `3,5}`?
fn repeats(rest: &str) -> bool {
    let Some((counts, _)) = rest.split_once('}') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match counts.split_once(',') {
        None => digits(counts),
        Some((least, most)) => digits(least) && (most.is_empty() || digits(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::compiled;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a_b-c", true),
            (r"^[[]x]$", "[x]", true),
            (r"^a{b$", "a{b", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^(\/[a-z]+)+$", "/a/b", true),
        ] {
            assert_eq!(
                compiled(pattern).map(|regex| regex.is_match(text)),
                Ok(matches),
                "{pattern} on {text}"
            );
        }
        assert!(compiled("(").is_err());
    }
}
