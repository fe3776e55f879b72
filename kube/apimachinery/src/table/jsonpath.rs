//! The part of `JSONPath` that printer columns use: `.a.b`, `['a']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`.

use serde_json::Value;

/// A path, read once.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// A path that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSONPath that columns can use: {0}")]
pub struct Malformed(String);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Counted from the end where it is negative.
    Index(i64),
    All,
    Descend,
    Where(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: JsonPath,
    /// Nothing asks only whether it is there.
    test: Option<(Test, Operand)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Test {
    Equal,
    Differ,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Value),
    Path(JsonPath),
}

impl JsonPath {
    /// Reads a path. It begins with a dot or a bracket, `$` and `@` before that mean nothing.
    ///
    /// # Errors
    /// Where it uses what columns can't.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed(text.to_owned());
        let mut rest = text.trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Descend);
                let (name, left) = name(after);
                if !name.is_empty() {
                    steps.push(if name == "*" { Step::All } else { Step::Field(name) });
                }
                rest = left;
            } else if let Some(after) = rest.strip_prefix('.') {
                let (name, left) = name(after);
                match name.as_str() {
                    "" if !left.starts_with('[') && !left.is_empty() => return Err(malformed()),
                    "" => {}
                    "*" => steps.push(Step::All),
                    _ => steps.push(Step::Field(name)),
                }
                rest = left;
            } else if rest.starts_with('[') {
                let end = closing(rest).ok_or_else(malformed)?;
                steps.push(bracket(rest[1..end].trim()).ok_or_else(malformed)?);
                rest = &rest[end + 1..];
            } else {
                return Err(malformed());
            }
        }
        Ok(Self { steps })
    }

    /// All values that it leads to.
    #[must_use]
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.from(value)).collect();
        }
        found
    }
}

/// A name up to the next dot or bracket; a backslash makes the next character part of it.
fn name(text: &str) -> (String, &str) {
    let (mut name, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, next)| next)),
            '.' | '[' => return (name, &text[at..]),
            plain => name.push(plain),
        }
    }
    (name, "")
}

/// Where the bracket that opens the text is closed; brackets in quotes don't count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return filtered(filter.trim()).map(Step::Where);
    }
    if let Some(name) = unquoted(inside) {
        return Some(Step::Field(name));
    }
    inside.parse().ok().map(Step::Index)
}

fn unquoted(text: &str) -> Option<String> {
    let inner = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))?;
    Some(inner.replace("\\.", "."))
}

fn filtered(text: &str) -> Option<Filter> {
    const TESTS: &[(&str, Test)] = &[
        ("==", Test::Equal),
        ("!=", Test::Differ),
        ("<=", Test::LessOrEqual),
        (">=", Test::GreaterOrEqual),
        ("<", Test::Less),
        (">", Test::Greater),
    ];
    let split = TESTS.iter().filter_map(|(sign, test)| Some((text.find(sign)?, *sign, *test)));
    let Some((at, sign, test)) = split.min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len())) else {
        return Some(Filter { left: JsonPath::parse(text).ok()?, test: None });
    };
    let (left, right) = (text[..at].trim(), text[at + sign.len()..].trim());
    let operand = match unquoted(right) {
        Some(text) => Operand::Literal(text.into()),
        None if right.starts_with(['@', '$']) => Operand::Path(JsonPath::parse(right).ok()?),
        None => Operand::Literal(serde_json::from_str(right).ok()?),
    };
    Some(Filter { left: JsonPath::parse(left).ok()?, test: Some((test, operand)) })
}

impl Step {
    fn from<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), _) => value.get(name).into_iter().collect(),
            (Self::Index(at), Value::Array(items)) => {
                let at = if *at < 0 { at + i64::try_from(items.len()).unwrap_or(i64::MAX) } else { *at };
                usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(fields)) => fields.values().collect(),
            (Self::Where(filter), Value::Array(items)) => {
                items.iter().filter(|item| filter.holds(item)).collect()
            }
            (Self::Descend, _) => {
                let mut all = Vec::new();
                descend(value, &mut all);
                all
            }
            _ => Vec::new(),
        }
    }
}

fn descend<'a>(value: &'a Value, all: &mut Vec<&'a Value>) {
    all.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| descend(field, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let left = self.left.find(item).into_iter().next();
        let Some((test, operand)) = &self.test else { return left.is_some() };
        let right = match operand {
            Operand::Literal(value) => Some(value),
            Operand::Path(path) => path.find(item).into_iter().next(),
        };
        let (Some(left), Some(right)) = (left, right) else { return false };
        let ordered = match (left, right) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            _ => left.as_f64().zip(right.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        };
        match test {
            Test::Equal => left == right || ordered.is_some_and(std::cmp::Ordering::is_eq),
            Test::Differ => left != right && !ordered.is_some_and(std::cmp::Ordering::is_eq),
            Test::Less => ordered.is_some_and(std::cmp::Ordering::is_lt),
            Test::LessOrEqual => ordered.is_some_and(std::cmp::Ordering::is_le),
            Test::Greater => ordered.is_some_and(std::cmp::Ordering::is_gt),
            Test::GreaterOrEqual => ordered.is_some_and(std::cmp::Ordering::is_ge),
        }
    }
}
