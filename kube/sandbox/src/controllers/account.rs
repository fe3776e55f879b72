//! The ServiceAccount that every namespace has.

use super::action::{Action, Kind, Plan};
use serde_json::json;

/// The name of the account that pods have when they name none.
pub(crate) const DEFAULT: &str = "default";

/// Makes the account where it is missing. A namespace on its way out gets nothing new.
pub(crate) fn plan(namespace: &str, going: bool, there: bool) -> Plan {
    let missing = !there && !going;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT, "namespace": namespace},
    });
    Plan {
        actions: missing.then_some(Action::Create(Kind::Account, account)).into_iter().collect(),
        again: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_made_once_and_not_in_a_namespace_that_goes() {
        for (going, there, made) in [(false, false, 1), (false, true, 0), (true, false, 0), (true, true, 0)] {
            assert_eq!(plan("shop", going, there).actions.len(), made, "{going} {there}");
        }
    }
}
