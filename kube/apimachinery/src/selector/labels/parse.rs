//! The text form: tokens, then requirements.

use super::{Operator, Requirement, Selector};
use crate::invalid::FieldError;
use crate::names;
use crate::selector::{SelectorError, TERMS_MOST, too_many_terms};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    In,
    NotIn,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(word) => word,
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::End => "",
        }
    }

    /// The word that it is where no operator can stand: `in` is a label's key or value there.
    fn word(self) -> Option<&'a str> {
        match self {
            Self::Word(_) | Self::In | Self::NotIn => Some(self.text()),
            _ => None,
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Selector, SelectorError> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut requirements = parser.selector().map_err(SelectorError)?;
    if requirements.len() > TERMS_MOST {
        return Err(too_many_terms(requirements.len()));
    }
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Selector { requirements })
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let special = |byte: u8| b"=!(),><".contains(&byte);
    let space = |byte: u8| b" \t\r\n".contains(&byte);
    // A zero byte ends a selector.
    let text = text.split('\0').next().unwrap_or_default();
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at).copied() {
        let (token, length) = match (byte, bytes.get(at + 1)) {
            (byte, _) if space(byte) => {
                at += 1;
                continue;
            }
            (b'=', Some(b'=')) => (Token::DoubleEquals, 2),
            (b'!', Some(b'=')) => (Token::NotEquals, 2),
            (b'=', _) => (Token::Equals, 1),
            (b'!', _) => (Token::Not, 1),
            (b'(', _) => (Token::Open, 1),
            (b')', _) => (Token::Close, 1),
            (b',', _) => (Token::Comma, 1),
            (b'>', _) => (Token::Greater, 1),
            (b'<', _) => (Token::Less, 1),
            _ => {
                let length = bytes[at..].iter().take_while(|byte| !special(**byte) && !space(**byte)).count();
                match &text[at..at + length] {
                    "in" => (Token::In, length),
                    "notin" => (Token::NotIn, length),
                    word => (Token::Word(word), length),
                }
            }
        };
        found.push(token);
        at += length;
    }
    found
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.peek();
            if token == Token::End {
                return Ok(requirements);
            }
            if token.word().is_none() && token != Token::Not {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", token.text()));
            }
            let requirement =
                self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Comma => {
                    let token = self.peek();
                    if token.word().is_none() && token != Token::Not {
                        return Err(format!("found '{}', expected: identifier after ','", token.text()));
                    }
                }
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next();
        let absent = token == Token::Not;
        if absent {
            token = self.next();
        }
        let key = token.word().ok_or_else(|| format!("found '{}', expected: identifier", token.text()))?;
        let wrong = names::qualified(key);
        if !wrong.is_empty() {
            // The server has no path for the text form, and prints that it has none.
            return Err(FieldError::invalid("<nil>", key, wrong.join("; ")).to_string());
        }
        let alone = matches!(self.peek(), Token::End | Token::Comma);
        if absent || alone {
            let operator = if absent { Operator::DoesNotExist } else { Operator::Exists };
            return Ok(Requirement { key: key.to_owned(), operator, values: Vec::new() });
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => self.value()?,
        };
        checked(key, operator, values.into_iter().map(str::to_owned).collect())
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next() {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        })
    }

    fn value(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(BTreeSet::from([""]));
        }
        let token = self.next();
        let word = token.word().ok_or_else(|| format!("found '{}', expected: identifier", token.text()))?;
        Ok(BTreeSet::from([word]))
    }

    /// `(a, b)`; an empty place between commas is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let token = self.next();
        if token != Token::Open {
            return Err(format!("found '{}' expected: '('", token.text()));
        }
        let token = self.peek();
        if token == Token::Close {
            self.at += 1;
            return Ok(BTreeSet::from([""]));
        }
        if token.word().is_none() && token != Token::Comma {
            return Err(format!("found '{}', expected: ',', ')' or identifier", token.text()));
        }
        let mut values = BTreeSet::new();
        loop {
            let token = self.next();
            if let Some(word) = token.word() {
                values.insert(word);
                match self.peek() {
                    Token::Comma => {}
                    Token::Close => break,
                    other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                }
            } else if token == Token::Comma {
                if values.is_empty() {
                    values.insert("");
                }
                match self.peek() {
                    Token::Close => {
                        values.insert("");
                        break;
                    }
                    Token::Comma => {
                        values.insert("");
                    }
                    _ => {}
                }
            } else {
                return Err(format!("found '{}', expected: ',', or identifier", token.text()));
            }
        }
        self.at += 1;
        Ok(values)
    }
}

fn checked(key: &str, operator: Operator, values: Vec<String>) -> Result<Requirement, String> {
    let mut errors = Vec::new();
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
        for (at, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid(&format!("values[{at}]"), value.as_str(), detail).to_string());
        }
    }
    for (at, value) in values.iter().enumerate() {
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            let path = format!("values[{at}][{key}]");
            errors.push(FieldError::invalid(&path, value.as_str(), wrong.join("; ")).to_string());
        }
    }
    match errors.len() {
        0 => Ok(Requirement { key: key.to_owned(), operator, values }),
        1 => Err(errors.remove(0)),
        _ => Err(format!("[{}]", errors.join(", "))),
    }
}
