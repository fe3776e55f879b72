//! How Go writes a struct's fields as JSON: which are left out when they are empty, and which never are.
//!
//! OpenAPI does not tell, and ownership of fields depends on it.

use crate::error::{Reading, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Structs of some packages by their OpenAPI name, `io.k8s.api.core.v1.Pod`.
#[derive(Debug, Default)]
pub(crate) struct GoStructs(BTreeMap<String, Vec<Member>>);

/// What stands in a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Member {
    Field(String, GoField),
    /// The fields of another struct, named without its package.
    Inline(String),
}

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoField {
    /// What its type is.
    pub(crate) form: Form,
    /// Left out when it is empty.
    pub(crate) omit_empty: bool,
    /// Left out when it is zero, also where it is a struct.
    pub(crate) omit_zero: bool,
}

/// What a field's type is, as far as the declaration shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nil when it is not there.
    Pointer,
    /// A slice or a map.
    Collection,
    /// A scalar, a struct, or a named type.
    Value,
}

impl GoStructs {
    /// Reads the structs of a package's folder; `package` is its OpenAPI prefix.
    pub(crate) fn read(&mut self, dir: &Path, package: &str) -> Result<()> {
        let entries = std::fs::read_dir(dir).reading(dir)?;
        for entry in entries {
            let path = entry.reading(dir)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".go") && !name.ends_with("_test.go") && !name.starts_with("zz_generated") {
                let source = std::fs::read_to_string(&path).reading(&path)?;
                self.parse(&source, package);
            }
        }
        Ok(())
    }

    fn parse(&mut self, source: &str, package: &str) {
        let mut current: Option<(String, Vec<Member>)> = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
                current = Some((format!("{package}.{name}"), Vec::new()));
            } else if line == "}" {
                self.0.extend(current.take());
            } else if let Some((_, members)) = &mut current {
                members.extend(member(line));
            }
        }
    }

    /// A field by the struct's OpenAPI name and its own JSON name.
    #[must_use]
    pub(crate) fn field(&self, of: &str, name: &str) -> Option<GoField> {
        self.0.get(of)?.iter().find_map(|member| match member {
            Member::Field(field, found) if field == name => Some(*found),
            Member::Field(..) => None,
            Member::Inline(other) => {
                let package = of.rsplit_once('.')?.0;
                let candidates = [format!("{package}.{other}"), format!("{META}.{other}")];
                candidates.iter().find_map(|candidate| self.field(candidate, name))
            }
        })
    }
}

/// The OpenAPI prefix of the package of everything that objects have in common.
pub(crate) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// One line of a struct: a name, a type, and a tag with the name in JSON.
fn member(line: &str) -> Option<Member> {
    let declaration = line.trim();
    let (declared, tags) = declaration.split_once('`')?;
    let tag = tags.split_once("json:\"")?.1.split_once('"')?.0;
    let mut options = tag.split(',');
    let json = options.next().unwrap_or_default();
    let options: Vec<_> = options.collect();
    let mut words = declared.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    let go_type = second.unwrap_or(first);
    if options.contains(&"inline") || (json.is_empty() && second.is_none()) {
        let name = go_type.trim_start_matches('*');
        return Some(Member::Inline(name.rsplit('.').next().unwrap_or(name).to_owned()));
    }
    let form = if go_type.starts_with('*') {
        Form::Pointer
    } else if go_type.starts_with('[') || go_type.starts_with("map[") {
        Form::Collection
    } else {
        Form::Value
    };
    let field = GoField {
        form,
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
    };
    Some(Member::Field(json.to_owned(), field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_its_struct_and_in_what_that_inlines() {
        let mut structs = GoStructs::default();
        let source = "
type Reference struct {
	// The name.
	Name string `json:\"name,omitempty\" protobuf:\"bytes,1\"`
}
type Selector struct {
	Reference `json:\",inline\"`
	Key string `json:\"key\"`
	Optional *bool `json:\"optional,omitempty\"`
	Items []string `json:\"items\"`
	Since Time `json:\"since,omitempty,omitzero\"`
}
";
        structs.parse(source, "io.k8s.api.core.v1");
        let field = |name| structs.field("io.k8s.api.core.v1.Selector", name);
        let go = |form, omit_empty, omit_zero| Some(GoField { form, omit_empty, omit_zero });
        assert_eq!(field("name"), go(Form::Value, true, false));
        assert_eq!(field("key"), go(Form::Value, false, false));
        assert_eq!(field("optional"), go(Form::Pointer, true, false));
        assert_eq!(field("items"), go(Form::Collection, false, false));
        assert_eq!(field("since"), go(Form::Value, true, true));
        assert_eq!(field("other"), None);
    }
}
