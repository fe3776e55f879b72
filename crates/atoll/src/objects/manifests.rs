//! Files with objects in them: YAML of one or more documents, or JSON; a folder's, or what stdin brings.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::text;
use crate::failure::Failure;

/// What a file of a folder must end in to be read.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// An object, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) object: Value,
    pub(crate) source: Source,
}

/// Where an object stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    file: String,
    /// Which document it is, from one on; none if there is only one.
    document: Option<usize>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.document {
            Some(number) => write!(f, "{}, document {number}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// Reads all files that were named: a file, a folder, or `-` for stdin.
pub(crate) fn read(names: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut all = Vec::new();
    for name in names {
        if name == Path::new("-") {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure::manifest("stdin", &error.to_string()))?;
            all.extend(objects("stdin", &text)?);
            continue;
        }
        for file in files(name)? {
            let shown = file.display().to_string();
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| Failure::manifest(&shown, &error.to_string()))?;
            all.extend(objects(&shown, &text)?);
        }
    }
    if all.is_empty() {
        let names: Vec<String> = names.iter().map(|name| name.display().to_string()).collect();
        return Err(Failure::manifest(&names.join(", "), "it contains no objects").into());
    }
    Ok(all)
}

/// The file itself, or those of a folder, by name.
fn files(name: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !name.is_dir() {
        return Ok(vec![name.to_owned()]);
    }
    let unreadable =
        |error: std::io::Error| Failure::manifest(&name.display().to_string(), &error.to_string());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(name).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_file() && ENDINGS.contains(&ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The objects in a text. A List is what is in it.
pub(crate) fn objects(file: &str, content: &str) -> Result<Vec<Manifest>, Failure> {
    let documents = documents(content);
    let several = documents.len() > 1;
    let mut all = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let source = Source { file: file.to_owned(), document: several.then_some(index + 1) };
        let object: Value = serde_saphyr::from_str(document)
            .map_err(|error| Failure::manifest(&source.to_string(), &error.to_string()))?;
        let objects = match (text(&object, "/kind"), object.get("items").and_then(Value::as_array)) {
            (kind, Some(items)) if kind.ends_with("List") => items.clone(),
            _ => vec![object],
        };
        for object in objects {
            check(&object).map_err(|why| Failure::manifest(&source.to_string(), why))?;
            all.push(Manifest { object, source: source.clone() });
        }
    }
    Ok(all)
}

/// Is it an object of Kubernetes, with a name?
fn check(object: &Value) -> Result<(), &'static str> {
    if text(object, "/apiVersion").is_empty() || text(object, "/kind").is_empty() {
        return Err("apiVersion or kind is missing");
    }
    if text(object, "/metadata/name").is_empty() {
        return Err("metadata.name is missing");
    }
    Ok(())
}

/// The documents of a YAML text that have more than comments in them. They are cut before they are read, so that an error
/// names its document and the others can be counted.
fn documents(content: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in content.split_inclusive('\n') {
        let next = at + line.len();
        let ends = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\r']));
        if ends {
            documents.push(&content[start..at]);
            // What stands behind the dashes on the same line belongs to the new document.
            start = at + 3;
        }
        at = next;
    }
    documents.push(&content[start..]);
    let said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    documents.retain(|document| document.lines().any(said));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# first\n---\n# a comment alone\n---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n--- # second\napiVersion: v1\nkind: B\nmetadata: {name: b}\ndata: {text: \"a\\n---b\"}\n---\n";

    fn names(text: &str) -> Vec<String> {
        let read = objects("f", text).unwrap();
        read.iter().map(|one| format!("{} {}", one.object["kind"].as_str().unwrap(), one.source)).collect()
    }

    #[test]
    fn documents_are_counted_without_the_empty_ones() {
        assert_eq!(names(TWO), ["A f, document 1", "B f, document 2"]);
        assert_eq!(
            names("{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\"}}"),
            ["A f"]
        );
        assert!(objects("f", "---\n# nothing\n").unwrap().is_empty());
    }

    #[test]
    fn a_list_is_what_is_in_it() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- {apiVersion: v1, kind: B, metadata: {name: b}}\n";
        assert_eq!(names(list), ["A f", "B f"]);
    }

    #[test]
    fn what_is_no_object_is_named() {
        for (content, want) in [
            ("kind: A\n", "cannot read f"),
            ("apiVersion: v1\nkind: A\nmetadata: {}\n", "cannot read f"),
            ("apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\na: b: c\n", "cannot read f, document 2"),
        ] {
            assert_eq!(objects("f", content).unwrap_err().to_string(), want, "{content}");
        }
    }
}
