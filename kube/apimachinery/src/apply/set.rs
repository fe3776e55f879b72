//! Sets of fields, as a tree: what one manager owns, or what a comparison found.

use super::element::Element;
use super::shape::Type;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A set of fields. A field is in it or not independently of what is below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(BTreeMap<Element, Node>);

/// One step of the tree. There is none that is neither a member nor has something below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    below: Set,
}

impl Node {
    fn useful(&self) -> bool {
        self.member || !self.below.0.is_empty()
    }
}

impl Set {
    /// Sets of these paths, whose names are parted by dots.
    pub(super) fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.split('.').map(Element::field).collect::<Vec<_>>());
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a path, but not the steps that lead to it. No manager owns the object as a whole.
    pub(super) fn insert(&mut self, path: &[Element]) {
        let Some((last, way)) = path.split_last() else { return };
        let mut set = self;
        for step in way {
            set = &mut set.0.entry(step.clone()).or_default().below;
        }
        set.0.entry(last.clone()).or_default().member = true;
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        self.0.get(element).is_some_and(|node| node.member)
    }

    pub(super) fn contains(&self, path: &[Element]) -> bool {
        let Some((last, way)) = path.split_last() else { return false };
        let mut set = self;
        for step in way {
            match set.0.get(step) {
                Some(node) => set = &node.below,
                None => return false,
            }
        }
        set.has(last)
    }

    /// What is below one step; nothing when there is none.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.0.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// The steps of this level, and whether they are members.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Element, bool)> {
        self.0.iter().map(|(element, node)| (element, node.member))
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut united = self.clone();
        for (element, node) in &other.0 {
            let into = united.0.entry(element.clone()).or_default();
            into.member |= node.member;
            if !node.below.is_empty() {
                into.below = into.below.union(&node.below);
            }
        }
        united
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |mine, theirs| Node {
            member: mine.member && theirs.is_some_and(|theirs| theirs.member),
            below: theirs.map(|theirs| mine.below.intersection(&theirs.below)).unwrap_or_default(),
        })
    }

    /// Without the members of `other`; what is below such a member stays.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.combined(other, |mine, theirs| match theirs {
            None => mine.clone(),
            Some(theirs) => {
                Node { member: mine.member && !theirs.member, below: mine.below.difference(&theirs.below) }
            }
        })
    }

    /// Without the members of `other` and all that is below them.
    pub(super) fn without(&self, other: &Self) -> Self {
        self.combined(other, |mine, theirs| match theirs {
            None => mine.clone(),
            Some(theirs) if theirs.member => Node::default(),
            Some(theirs) => Node { member: mine.member, below: mine.below.without(&theirs.below) },
        })
    }

    fn combined(&self, other: &Self, node: impl Fn(&Node, Option<&Node>) -> Node) -> Self {
        let nodes = self.0.iter().map(|(element, mine)| (element.clone(), node(mine, other.0.get(element))));
        Self(nodes.filter(|(_, node)| node.useful()).collect())
    }

    /// With every declared field that leads to a member; keys of maps and items of lists stay out.
    pub(super) fn with_named_fields(&self, of: Option<Type<'_>>) -> Self {
        let atom = of.map(Type::atom).unwrap_or_default();
        let nodes = self.0.iter().map(|(element, node)| {
            let (below, named) = match (element, &atom.map, &atom.list) {
                (Element::Field(name), Some(map), _) => (map.field(name), map.declares(name)),
                (Element::Key(_), _, Some(list)) => (Some(list.items), false),
                _ => (None, false),
            };
            let member = node.member || (named && !node.below.is_empty());
            (element.clone(), Node { member, below: node.below.with_named_fields(below) })
        });
        Self(nodes.collect())
    }

    /// Calls `with` for every member: those of a level first, then those below.
    pub(super) fn each(&self, with: &mut impl FnMut(&[Element])) {
        self.each_from(&mut Vec::new(), with);
    }

    fn each_from(&self, path: &mut Vec<Element>, with: &mut impl FnMut(&[Element])) {
        for element in self.0.iter().filter(|(_, node)| node.member).map(|(element, _)| element) {
            path.push(element.clone());
            with(path);
            path.pop();
        }
        for (element, node) in &self.0 {
            path.push(element.clone());
            node.below.each_from(path, with);
            path.pop();
        }
    }

    /// As `fieldsV1` of an entry of `managedFields`.
    pub(super) fn encode(&self) -> Value {
        let mut fields = Map::new();
        for (element, node) in &self.0 {
            let mut below = node.below.encode();
            if let (true, false, Value::Object(below)) = (node.member, node.below.is_empty(), &mut below) {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(element.encode(), below);
        }
        Value::Object(fields)
    }

    /// From `fieldsV1`.
    pub(super) fn decode(fields: &Value) -> Result<Self, String> {
        let Value::Object(fields) = fields else { return Err("fieldsV1 must be an object".to_owned()) };
        let mut set = Self::default();
        for (key, below) in fields.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = Element::decode(key)? else { continue };
            let alone = below.as_object().is_none_or(|below| below.keys().all(|key| key == "."));
            let member = alone || below.get(".").is_some();
            let below = Self::decode(below)?;
            // Steps of a kind that is not known are dropped, which may leave nothing below.
            let member = member || below.is_empty();
            set.0.insert(element, Node { member, below });
        }
        Ok(set)
    }
}
