//! The messages of `jeremyot/serve`: `{{env "NAME"}}` and `{{addr}}`. Pure.

use std::collections::BTreeMap;

/// Fills in a message; what is not understood stays as it is.
pub(super) fn render(template: &str, environment: &BTreeMap<String, String>, address: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((inside, after)) = after.split_once("}}") else {
            text.push_str("{{");
            rest = after;
            continue;
        };
        match inside.trim().split_once(' ') {
            None if inside.trim() == "addr" => text.push_str(address),
            Some(("env", name)) => {
                let value = environment.get(name.trim().trim_matches(['"', '\\']));
                text.push_str(value.map_or("", String::as_str));
            }
            _ => text.extend(["{{", inside, "}}"]),
        }
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_who_answers() {
        let environment = BTreeMap::from([("POD_NAME".to_owned(), "serve-1".to_owned())]);
        for (template, want) in [
            (
                "'hello (Pod: {{env \"POD_NAME\"}} Address: {{addr}})'",
                "'hello (Pod: serve-1 Address: 127.1.1.1)'",
            ),
            ("{{ env \"NOBODY\" }}|{{other}}|{{", "|{{other}}|{{"),
        ] {
            assert_eq!(render(template, &environment, "127.1.1.1"), want, "{template}");
        }
    }
}
