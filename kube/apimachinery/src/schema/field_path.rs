//! `fieldPath` of a rule, and the paths of `selectableFields`: `.spec.ports`, `.spec['x/y']`.

/// The steps of a path, or nothing where it is malformed.
pub(super) fn field_path(text: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("['") {
            let mut step = String::new();
            let mut characters = after.char_indices();
            let end = loop {
                match characters.next()? {
                    (at, '\'') => break at,
                    (_, '\\') => step.push(match characters.next()?.1 {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        plain @ ('\'' | '\\') => plain,
                        _ => return None,
                    }),
                    (_, plain) => step.push(plain),
                }
            };
            rest = after[end..].strip_prefix("']")?;
            steps.push(step);
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(after[..end].to_owned());
            rest = &after[end..];
        }
    }
    Some(steps)
}
