//! How built-in kinds are encoded in protobuf: message by message, from the `.proto` files and Go structs of the
//! modules that Kubernetes is built from.
//!
//! ```text
//!   apps/v1/Deployment<tab>k8s.io.api.apps.v1.Deployment                        a kind, and its message
//!   k8s.io.api.apps.v1.Deployment<tab>1 metadata k8s.io…ObjectMeta<tab>…        a message, and its fields
//! ```
//!
//! A field is its number, its name in JSON and its type; before the type stand marks: `*` a list, `%` a map, `^` its
//! fields stand among its parent's, `?` left out when it is empty.

use crate::error::{Reading, Result};
use atoll_lab::kubernetes_sources;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Module, folder in it, API group; no group where the messages are only parts of others.
const PACKAGES: &[(&str, &str, Option<&str>)] = &[
    ("k8s.io/api", "admissionregistration/v1", Some("admissionregistration.k8s.io")),
    ("k8s.io/api", "apps/v1", Some("apps")),
    ("k8s.io/api", "authentication/v1", Some("authentication.k8s.io")),
    ("k8s.io/api", "authorization/v1", Some("authorization.k8s.io")),
    ("k8s.io/api", "autoscaling/v1", Some("autoscaling")),
    ("k8s.io/api", "autoscaling/v2", Some("autoscaling")),
    ("k8s.io/api", "batch/v1", Some("batch")),
    ("k8s.io/api", "coordination/v1", Some("coordination.k8s.io")),
    ("k8s.io/api", "core/v1", Some("")),
    ("k8s.io/api", "discovery/v1", Some("discovery.k8s.io")),
    ("k8s.io/api", "events/v1", Some("events.k8s.io")),
    ("k8s.io/api", "networking/v1", Some("networking.k8s.io")),
    ("k8s.io/api", "policy/v1", Some("policy")),
    ("k8s.io/api", "rbac/v1", Some("rbac.authorization.k8s.io")),
    ("k8s.io/api", "scheduling/v1", Some("scheduling.k8s.io")),
    ("k8s.io/api", "storage/v1", Some("storage.k8s.io")),
    ("k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1", Some("apiextensions.k8s.io")),
    ("k8s.io/kube-aggregator", "pkg/apis/apiregistration/v1", Some("apiregistration.k8s.io")),
    ("k8s.io/apimachinery", "pkg/api/resource", None),
    ("k8s.io/apimachinery", "pkg/apis/meta/v1", None),
    ("k8s.io/apimachinery", "pkg/runtime", None),
    ("k8s.io/apimachinery", "pkg/util/intstr", None),
];

/// Reads the facts; `work` is a folder to write to.
pub fn collect(work: &Path) -> Result<String> {
    let mut names: Vec<&str> = PACKAGES.iter().map(|(module, ..)| *module).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let dirs: BTreeMap<&str, _> = names.iter().copied().zip(kubernetes_sources(&names, work)?).collect();
    let (mut kinds, mut messages) = (String::new(), String::new());
    for (module, folder, group) in PACKAGES {
        let dir = dirs[module].join(folder);
        let proto = dir.join("generated.proto");
        let proto = std::fs::read_to_string(&proto).reading(&proto)?;
        let tags = go_tags(&dir)?;
        let package = format!("{module}/{folder}").replace('/', ".");
        for (name, fields) in messages_of(&proto) {
            let line = message(&package, &name, &fields, &tags);
            if let Some(group) = group
                && fields.iter().any(|field| field.name == "metadata")
            {
                let version = folder.rsplit('/').next().unwrap_or_default();
                let slash = if group.is_empty() { "" } else { "/" };
                // Writing to a String can't fail.
                let _ = writeln!(kinds, "{group}{slash}{version}/{name}\t{package}.{name}");
            }
            messages.push_str(&line);
        }
    }
    Ok(kinds + &messages)
}

struct ProtoField {
    number: u32,
    name: String,
    /// `repeated` or `map`.
    many: &'static str,
    kind: String,
}

/// What Go's tags add to a field.
#[derive(Default)]
struct Tag {
    json: String,
    inline: bool,
    drop_empty: bool,
}

fn message(package: &str, name: &str, fields: &[ProtoField], tags: &BTreeMap<(String, u32), Tag>) -> String {
    let mut line = format!("{package}.{name}");
    for field in fields {
        let tag = tags.get(&(name.to_owned(), field.number));
        let mut marks = field.many.to_owned();
        if tag.is_some_and(|tag| tag.inline) {
            marks.push('^');
        }
        if tag.is_some_and(|tag| tag.drop_empty) {
            marks.push('?');
        }
        let json = tag.map(|tag| tag.json.as_str()).filter(|json| !json.is_empty()).unwrap_or(&field.name);
        let kind = match field.kind.as_str() {
            scalar @ ("string" | "bool" | "bytes" | "double" | "int32" | "int64") => scalar.to_owned(),
            qualified if qualified.starts_with('.') => qualified[1..].to_owned(),
            local => format!("{package}.{local}"),
        };
        let _ = write!(line, "\t{} {json} {marks}{kind}", field.number);
    }
    line.push('\n');
    line
}

/// The messages of a `.proto` file, which generators write in one simple form.
fn messages_of(source: &str) -> Vec<(String, Vec<ProtoField>)> {
    let mut found: Vec<(String, Vec<ProtoField>)> = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("message ").and_then(|rest| rest.strip_suffix(" {")) {
            found.push((name.to_owned(), Vec::new()));
        } else if let (Some((_, fields)), Some(field)) = (found.last_mut(), proto_field(line)) {
            fields.push(field);
        }
    }
    found
}

fn proto_field(line: &str) -> Option<ProtoField> {
    let (declared, number) = line.strip_suffix(';')?.rsplit_once(" = ")?;
    let number = number.split_whitespace().next()?.parse().ok()?;
    let (kind, name) = declared.rsplit_once(' ')?;
    let (many, kind) = if let Some(kind) = kind.strip_prefix("repeated ") {
        ("*", kind)
    } else if let Some(kind) = kind.strip_prefix("map<string, ").and_then(|kind| kind.strip_suffix('>')) {
        ("%", kind)
    } else {
        ("", kind.strip_prefix("optional ").or_else(|| kind.strip_prefix("required "))?)
    };
    Some(ProtoField { number, name: name.to_owned(), many, kind: kind.to_owned() })
}

/// Tags of a package's structs by struct and field number.
fn go_tags(dir: &Path) -> Result<BTreeMap<(String, u32), Tag>> {
    let mut tags = BTreeMap::new();
    for entry in std::fs::read_dir(dir).reading(dir)? {
        let path = entry.reading(dir)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".go") || name.ends_with("_test.go") || name.contains("generated") {
            continue;
        }
        let source = std::fs::read_to_string(&path).reading(&path)?;
        let mut current = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
                current = Some(name.to_owned());
            } else if line == "}" {
                current = None;
            } else if let (Some(name), Some((number, tag))) = (&current, tag(line)) {
                tags.insert((name.clone(), number), tag);
            }
        }
    }
    Ok(tags)
}

fn tag(line: &str) -> Option<(u32, Tag)> {
    let (declared, tags) = line.trim().split_once('`')?;
    let value = |key: &str| tags.split_once(&format!("{key}:\"")).and_then(|(_, rest)| rest.split_once('"'));
    let number = value("protobuf")?.0.split(',').nth(1)?.parse().ok()?;
    let mut options = value("json")?.0.split(',');
    let json = options.next().unwrap_or_default().to_owned();
    let options: Vec<&str> = options.collect();
    let go_type = declared.split_whitespace().nth(1).unwrap_or_default();
    let drop_empty = !go_type.starts_with('*') && options.contains(&"omitempty");
    Some((number, Tag { json, inline: options.contains(&"inline"), drop_empty }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_its_names_from_the_tags() {
        let proto = "message Key {\n  // Said.\n  optional Reference localReference = 1;\n  optional string key = 2;\n  \
                     map<string, .other.Quantity> limits = 3;\n  repeated int32 ports = 4;\n}\n";
        let (name, fields) = messages_of(proto).remove(0);
        let mut tags = BTreeMap::new();
        for line in [
            "\tReference `json:\",inline\" protobuf:\"bytes,1,opt,name=localReference\"`",
            "\tKey string `json:\"theKey,omitempty\" protobuf:\"bytes,2,opt,name=key\"`",
        ] {
            let (number, tag) = tag(line).unwrap();
            tags.insert((name.clone(), number), tag);
        }
        assert_eq!(
            message("p.v1", &name, &fields, &tags),
            "p.v1.Key\t1 localReference ^p.v1.Reference\t2 theKey ?string\t3 limits %other.Quantity\t4 ports *int32\n"
        );
    }
}
