//! Quantities in the one way that an API server writes them: `0.5` is `500m`, `1024Mi` is `1Gi`.

/// What a quantity is a multiple of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// From 10⁻⁹ on, a thousand times each.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// The quantity in its one form; none when it is no quantity, or too large to be sure.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mut ten = -i32::try_from(fraction.len()).ok()?;
    let (format, two) = match suffix {
        "" => (Format::Decimal, 0),
        _ if BINARY.contains(&suffix) => {
            (Format::Binary, 10 * u32::try_from(BINARY.iter().position(|s| *s == suffix)?).ok()?)
        }
        _ if DECIMAL.contains(&suffix) => {
            ten += 3 * i32::try_from(DECIMAL.iter().position(|s| *s == suffix)?).ok()? - 9;
            (Format::Decimal, 0)
        }
        _ => {
            ten += suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
            (Format::Exponent, 0)
        }
    };
    let (mut mantissa, mut ten) = reduced(digits.checked_mul(1_i128.checked_shl(two)?)?, ten);
    // Nothing is finer than a billionth; more is asked for rather than less.
    while ten < -9 {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 != 0);
        ten += 1;
    }
    let (mantissa, ten) = reduced(mantissa, ten);
    let written = match format {
        Format::Binary => binary(mantissa, ten).or_else(|| decimal(mantissa, ten, Format::Decimal)),
        other => decimal(mantissa, ten, other),
    }?;
    Some(if negative && mantissa != 0 { format!("-{written}") } else { written })
}

/// Without factors of ten.
fn reduced(mut mantissa: i128, mut ten: i32) -> (i128, i32) {
    if mantissa == 0 {
        return (0, 0);
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        ten += 1;
    }
    (mantissa, ten)
}

/// Whole numbers from 1024 on, with the largest suffix that leaves nothing over.
fn binary(mantissa: i128, ten: i32) -> Option<String> {
    let mut value = mantissa.checked_mul(10_i128.checked_pow(u32::try_from(ten).ok()?)?)?;
    if value < 1024 {
        return None;
    }
    let mut suffix = 0;
    while value % 1024 == 0 && suffix + 1 < BINARY.len() {
        value /= 1024;
        suffix += 1;
    }
    Some(format!("{value}{}", BINARY[suffix]))
}

/// A whole number of thousands or thousandths.
fn decimal(mantissa: i128, ten: i32, format: Format) -> Option<String> {
    let over = ten.rem_euclid(3);
    let mantissa = mantissa.checked_mul(10_i128.checked_pow(u32::try_from(over).ok()?)?)?;
    let ten = ten - over;
    if format == Format::Exponent {
        return Some(if ten == 0 { mantissa.to_string() } else { format!("{mantissa}e{ten}") });
    }
    let suffix = DECIMAL.get(usize::try_from((ten + 9) / 3).ok()?)?;
    Some(format!("{mantissa}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn a_quantity_has_one_form() {
        for (given, wanted) in [
            ("0.5", "500m"),
            ("1000", "1k"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1536Mi", "1536Mi"),
            ("0.5Ki", "512"),
            ("100Mi", "100Mi"),
            ("1e3", "1e3"),
            ("1e4", "10e3"),
            ("0", "0"),
            ("-0.5", "-500m"),
            ("0.0000000001", "1n"),
            ("12E", "12E"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(wanted), "{given}");
        }
        for wrong in ["", "x", "1.2.3", "1 Gi", "1Qi"] {
            assert_eq!(canonical(wrong), None, "{wrong}");
        }
    }
}
