//! Formats of strings, as far as a kube-apiserver checks them.

use super::pattern;
use ipnet::IpNet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Formats are compared without dashes: `date-time` is `datetime`.
fn normal(format: &str) -> String {
    format.replace('-', "")
}

/// Is it a format that CRDs may use? Others are ignored.
#[must_use]
pub fn known(format: &str) -> bool {
    supported(format)
}

pub(super) fn supported(format: &str) -> bool {
    const SUPPORTED: &[&str] = &[
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "k8sshortname",
        "k8slongname",
    ];
    SUPPORTED.contains(&normal(format).as_str())
}

/// Is the text of this format?
pub(super) fn fits(format: &str, text: &str) -> bool {
    let like = |regex: &str| pattern::compiled(regex).is_ok_and(|regex| regex.is_match(text));
    match normal(format).as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => request_uri(text),
        "email" => email(text),
        "hostname" => hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "mac" => like(
            r"^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){19}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}|([0-9a-fA-F]{4}\.){3}[0-9a-fA-F]{4})$",
        ),
        "uuid" => like("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        "uuid3" => like("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        "uuid4" => like("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        "uuid5" => like("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        "isbn" => isbn10(text) || isbn13(text),
        "isbn10" => isbn10(text),
        "isbn13" => isbn13(text),
        "creditcard" => credit_card(text),
        "ssn" => like(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
        "hexcolor" => like("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "rgbcolor" => like(
            r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
        ),
        "byte" => like("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
        "date" => date(text),
        "datetime" => date_time(text),
        "duration" => crate::duration::parse(text).is_some(),
        "k8sshortname" => crate::names::dns1123_label(text).is_empty(),
        "k8slongname" => crate::names::dns1123_subdomain(text).is_empty(),
        _ => true,
    }
}

fn date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((day, time)) = lower.split_once('t') else { return false };
    let time = time.split('t').next().unwrap_or_default();
    let Ok(regex) =
        pattern::compiled("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
    else {
        return false;
    };
    let Some(parts) = regex.captures(time) else { return false };
    date(day) && &parts[1] <= "23" && &parts[2] <= "59" && &parts[3] <= "59"
}

fn cidr(text: &str) -> bool {
    let length = text.split_once('/').map_or("", |(_, length)| length);
    let plain = length == "0" || !length.starts_with(['0', '+']);
    plain && text.parse::<IpNet>().is_ok()
}

/// An absolute URI, or an absolute path.
fn request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(plain)
}

/// `name@host`, or `Words <name@host>`.
/// One label, or several with a last one of letters. By hand: as a pattern it is larger than any of a CRD's may be.
fn hostname(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let usual = |label: &&str| {
        let plain = label.chars().all(|c| c.is_ascii_digit() || c.is_alphabetic() || c == '-');
        !label.is_empty() && label.len() <= 63 && plain && !label.starts_with('-') && !label.ends_with('-')
    };
    let last = labels.last().copied().unwrap_or_default();
    let top = labels.len() == 1 || (last.chars().count() >= 2 && last.chars().all(char::is_alphabetic));
    text.len() <= 255 && labels.iter().all(usual) && top
}

fn email(text: &str) -> bool {
    let text = text.trim();
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(open), Some(inner)) => &inner[open + 1..],
        (None, None) => text,
        _ => return false,
    };
    let Some((local, host)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    (quoted || local.split('.').all(atom)) && host.split('.').all(atom)
}

fn digits_of(text: &str) -> Option<Vec<u32>> {
    text.chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| if c == 'X' { Some(10) } else { c.to_digit(10) })
        .collect()
}

fn isbn10(text: &str) -> bool {
    let Some(digits) = digits_of(text).filter(|digits| digits.len() == 10) else { return false };
    let sum: u32 = digits.iter().zip(1..).map(|(digit, weight)| digit * weight).sum();
    !digits[..9].contains(&10) && sum.is_multiple_of(11)
}

fn isbn13(text: &str) -> bool {
    let Some(digits) = digits_of(text).filter(|digits| digits.len() == 13) else { return false };
    let sum: u32 = digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    !digits.contains(&10) && sum.is_multiple_of(10)
}

fn credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let known = pattern::compiled(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14})$",
    )
    .is_ok_and(|regex| regex.is_match(&digits));
    let luhn = |(at, digit): (usize, u32)| match (at % 2, digit * 2) {
        (0, _) => digit,
        (_, twice) if twice > 9 => twice - 9,
        (_, twice) => twice,
    };
    let sum: u32 = digits.chars().rev().filter_map(|c| c.to_digit(10)).enumerate().map(luhn).sum();
    known && sum.is_multiple_of(10)
}
