//! Strings inside JSON.

/// One byte as the server shows it in a complaint.
pub(super) fn shown(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        other => {
            let quoted = crate::invalid::quoted(&char::from(other).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// Replaces escapes, which are known to be well-formed; half of a surrogate pair becomes a replacement character.
pub(super) fn unescaped(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else { break };
        rest = &rest[kind.len_utf8()..];
        match kind {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let unit = hex(rest);
                rest = rest.get(4..).unwrap_or_default();
                let low = rest.strip_prefix("\\u").map(hex).filter(|low| (0xdc00..0xe000).contains(low));
                match (unit, low) {
                    (0xd800..0xdc00, Some(low)) => {
                        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                        rest = rest.get(6..).unwrap_or_default();
                    }
                    _ => out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
            plain => out.push(plain),
        }
    }
    out.push_str(rest);
    out
}

fn hex(text: &str) -> u32 {
    text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xfffd)
}
