//! Which version of a group is preferred: stable before beta before alpha, later before earlier.

use std::cmp::Ordering;

/// Compares versions: the greater one is preferred.
pub(super) fn preference(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Names that follow no rule are in alphabetical order.
        (None, None) => b.cmp(a),
    }
}

/// Stability, major number, minor number of `v1`, `v2beta3`.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let major = major.parse().ok().filter(|_| !major.starts_with('0'))?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (_, Some(minor)) => (0, minor),
        _ => return None,
    };
    let minor = minor.parse().ok().filter(|_| !minor.starts_with('0'))?;
    Some((stability, major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_documented_order() {
        let mut versions = [
            "foo10",
            "v1alpha1",
            "v10",
            "v2",
            "v11beta2",
            "foo1",
            "v1",
            "v12alpha1",
            "v3beta1",
            "v10beta3",
            "v11alpha2",
        ];
        versions.sort_by(|a, b| preference(b, a));
        let want = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "v1alpha1",
            "foo1",
            "foo10",
        ];
        assert_eq!(versions, want);
    }
}
