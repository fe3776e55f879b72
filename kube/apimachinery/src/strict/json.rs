//! JSON, with duplicate fields told.

use super::text::{self, shown};
use super::{DEPTH_MOST, ParseError};
use crate::invalid::{TOLD_MOST, told};
use serde_json::{Map, Number, Value};

/// Reads one JSON value; with it come the paths of fields that were there more than once (the last one counts): the first
/// hundred, as a kube-apiserver tells them, so that it takes no longer to read a body the more of them there are.
///
/// # Errors
/// Where it is not JSON, or nested too deeply.
pub fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), ParseError> {
    let mut reader = Reader { bytes, at: 0, path: String::new(), doubled: Vec::new() };
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok((value, reader.doubled)),
        Some(byte) => Err(unexpected(byte, "after top-level value")),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    path: String,
    doubled: Vec<String>,
}

fn unexpected(byte: u8, place: &str) -> ParseError {
    ParseError::Syntax(format!("invalid character {} {place}", shown(byte)))
}

fn ended() -> ParseError {
    ParseError::Syntax("unexpected end of JSON input".to_owned())
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is no space; it must be there.
    fn next(&mut self) -> Result<u8, ParseError> {
        self.space();
        let byte = self.peek().ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    fn value(&mut self, depth: usize) -> Result<Value, ParseError> {
        match self.next()? {
            b'{' => self.object(deeper(depth)?),
            b'[' => self.array(deeper(depth)?),
            b'"' => self.string().map(Value::String),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            b'-' | b'0'..=b'9' => {
                self.at -= 1;
                self.number()
            }
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, ParseError> {
        for expected in word.bytes().skip(1) {
            let byte = self.peek().ok_or_else(ended)?;
            if byte != expected {
                let place = format!("in literal {word} (expecting {})", shown(expected));
                return Err(unexpected(byte, &place));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut fields = Map::new();
        let length = self.path.len();
        let mut byte = self.next()?;
        if byte == b'}' {
            return Ok(Value::Object(fields));
        }
        loop {
            if byte != b'"' {
                return Err(unexpected(byte, "looking for beginning of object key string"));
            }
            let name = self.string()?;
            match self.next()? {
                b':' => {}
                other => return Err(unexpected(other, "after object key")),
            }
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&name);
            let value = self.value(depth)?;
            if fields.insert(name, value).is_some() {
                self.tell_doubled();
            }
            self.path.truncate(length);
            match self.next()? {
                b'}' => return Ok(Value::Object(fields)),
                b',' => byte = self.next()?,
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
    }

    fn tell_doubled(&mut self) {
        if self.doubled.len() < TOLD_MOST {
            let path = told(self.path.as_str()).into_owned();
            if !self.doubled.contains(&path) {
                self.doubled.push(path);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut items = Vec::new();
        let length = self.path.len();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.path.push_str(&format!("[{}]", items.len()));
            items.push(self.value(depth)?);
            self.path.truncate(length);
            match self.next()? {
                b']' => return Ok(Value::Array(items)),
                b',' => {}
                other => return Err(unexpected(other, "after array element")),
            }
        }
    }

    /// The rest of a string whose opening quote was read.
    fn string(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        let mut escaped = false;
        loop {
            let byte = self.peek().ok_or_else(ended)?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                0..0x20 => return Err(unexpected(byte, "in string literal")),
                _ => {}
            }
        }
        let raw = String::from_utf8_lossy(&self.bytes[start..self.at - 1]);
        Ok(if escaped { text::unescaped(&raw) } else { raw.into_owned() })
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        let byte = self.peek().ok_or_else(ended)?;
        self.at += 1;
        match byte {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let digit = self.peek().ok_or_else(ended)?;
                    self.at += 1;
                    if !digit.is_ascii_hexdigit() {
                        return Err(unexpected(digit, "in \\u hexadecimal character escape"));
                    }
                }
                Ok(())
            }
            other => Err(unexpected(other, "in string escape code")),
        }
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek().ok_or_else(ended)? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            other => return Err(unexpected(other, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = String::from_utf8_lossy(&self.bytes[start..self.at]);
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(whole.into());
        }
        // What no i64 holds is a float, as it is for the server; and a whole float is written as an integer again.
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
        if let Some(whole) =
            text.parse::<f64>().ok().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)
        {
            return Ok((whole as i64).into());
        }
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite()).and_then(Number::from_f64);
        float.map(Value::Number).ok_or_else(|| {
            ParseError::Syntax(format!("json: cannot unmarshal number {text} into Go value of type float64"))
        })
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, place: &str) -> Result<(), ParseError> {
        match self.peek().ok_or_else(ended)? {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            other => Err(unexpected(other, place)),
        }
    }
}

fn deeper(depth: usize) -> Result<usize, ParseError> {
    if depth < DEPTH_MOST { Ok(depth + 1) } else { Err(ParseError::TooDeep) }
}
