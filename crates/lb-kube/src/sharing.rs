//! Who may share an address. Services of one namespace may, as one team has them. Services of different namespaces may only if each names the
//! other: no service gets onto a tenant's address by its own word alone.

use std::collections::BTreeSet;

use atoll_api::names::annotation::balancing::SHARE_WITH;

/// So many others can be named.
const MOST: usize = 64;
const LONGEST_NAME: usize = 63;

/// One who is named: all services of a namespace, or one of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Partner {
    namespace: String,
    name: Option<String>,
}

/// Whom a service lets share its addresses, as its annotation says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharing(BTreeSet<Partner>);

impl Sharing {
    /// Reads `billing,search/web`, and says what of it is invalid. What is invalid lets no service in.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut partners, mut odd) = (BTreeSet::new(), Vec::new());
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (namespace, name) = match part.split_once('/') {
                Some((namespace, name)) => (namespace, Some(name)),
                None => (part, None),
            };
            if !is_name(namespace) || name.is_some_and(|name| !is_name(name)) {
                let shown: String = part.chars().take(2 * LONGEST_NAME).collect();
                odd.push(format!(
                    "invalid part {shown:?} of {SHARE_WITH}; write it as NAMESPACE or NAMESPACE/SERVICE"
                ));
                continue;
            }
            if partners.len() == MOST {
                odd.push(format!("{SHARE_WITH} has more than {MOST} parts; the others are ignored"));
                break;
            }
            let (namespace, name) = (namespace.to_owned(), name.map(str::to_owned));
            partners.insert(Partner { namespace, name });
        }
        (Self(partners), odd)
    }

    /// As the annotation has it.
    pub(crate) fn text(&self) -> String {
        let each = self.0.iter().map(|one| match &one.name {
            Some(name) => format!("{}/{name}", one.namespace),
            None => one.namespace.clone(),
        });
        each.collect::<Vec<_>>().join(",")
    }

    fn names(&self, (namespace, name): (&str, &str)) -> bool {
        let is_named =
            |one: &Partner| one.namespace == namespace && one.name.as_deref().is_none_or(|only| only == name);
        self.0.iter().any(is_named)
    }
}

/// Whether two services, each of a namespace and with a name, may have the same address.
pub(crate) fn may_share(one: ((&str, &str), &Sharing), other: ((&str, &str), &Sharing)) -> bool {
    let same = one.0.0 == other.0.0 && !one.0.0.is_empty();
    same || (one.1.names(other.0) && other.1.names(one.0))
}

/// A DNS label, as names of namespaces and of services are.
fn is_name(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_NAME).contains(&text.len())
        && text.bytes().all(fine)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shared_only_if_each_side_names_the_other() {
        for (one, of_one, other, of_other, want) in [
            (("shop", "web"), "", ("shop", "api"), "", true),
            (("shop", "web"), "", ("thief", "web"), "", false),
            (("shop", "web"), "", ("thief", "web"), "shop", false),
            (("shop", "web"), "", ("thief", "web"), "shop/web,thief", false),
            (("shop", "web"), "billing", ("billing", "pay"), "", false),
            (("shop", "web"), "billing", ("billing", "pay"), "shop", true),
            (("shop", "web"), "billing/pay", ("billing", "pay"), "shop/web", true),
            (("shop", "web"), "billing/pay", ("billing", "other"), "shop/web", false),
            (("shop", "web"), "billing", ("billing", "pay"), "shop/other", false),
            (("shop", "web"), "*", ("thief", "web"), "*", false),
            (("", "lb.odd"), "", ("", "lb.odd2"), "", false),
        ] {
            let (of_one, of_other) = (Sharing::parse(of_one).0, Sharing::parse(of_other).0);
            for (a, b) in [((one, &of_one), (other, &of_other)), ((other, &of_other), (one, &of_one))] {
                assert_eq!(may_share(a, b), want, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn what_is_invalid_lets_nobody_in_and_is_said() {
        let (read, odd) = Sharing::parse(" billing , search/web,,Search,a/b/c,-x,*");
        assert_eq!((read.text().as_str(), odd.len()), ("billing,search/web", 4));
        assert_eq!(Sharing::parse(&read.text()), (read, Vec::new()));
        let many: Vec<String> = (0..1000).map(|number| format!("n{number}")).collect();
        let (read, odd) = Sharing::parse(&many.join(","));
        assert_eq!((read.0.len(), odd.len()), (MOST, 1));
    }
}
