//! What ownership needs to know of a schema: is a value a leaf, a map or a list, and what tells its items apart?

use super::element::{Element, Item};
use crate::builtin;
use crate::go;
use crate::schema::{Encoding, Kind, ListKind, Schema};
use serde_json::Value;

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type<'s> {
    /// As a schema says.
    Declared(Declared<'s>),
    /// Nothing is said: maps are owned key by key, lists as a whole.
    Deduced,
    /// Nothing is said, and it is owned as a whole.
    Opaque,
}

/// A type that a schema declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared<'s> {
    schema: &'s Schema,
    /// A parent lets unknown fields in, here and below.
    open: bool,
    /// An object with apiVersion, kind and metadata of its own.
    whole: bool,
}

/// What a value of a type may be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atom<'s> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List<'s>>,
    pub(super) map: Option<Fields<'s>>,
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Any,
}

/// A list's type.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'s> {
    pub(super) items: Type<'s>,
    pub(super) kind: &'s ListKind,
}

/// An object's type: declared fields, and what others are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'s> {
    of: Option<Declared<'s>>,
    others: Option<Type<'s>>,
    pub(super) atomic: bool,
}

/// Which of its possible forms a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Scalar,
    List,
    Map,
    /// Null, or nothing that the type allows: no form is preferred.
    Open,
}

static ATOMIC: ListKind = ListKind::Atomic;

impl<'s> Type<'s> {
    /// The type of whole objects of a kind.
    pub(super) fn of_object(schema: &'s Schema) -> Self {
        Self::declared(schema, false, true)
    }

    fn declared(schema: &'s Schema, open: bool, whole: bool) -> Self {
        Self::Declared(Declared {
            schema,
            open: open || schema.preserve_unknown,
            whole: whole || schema.embedded,
        })
    }

    /// What a value may be.
    pub(super) fn atom(self) -> Atom<'s> {
        match self {
            Self::Deduced => Atom {
                scalar: Some(Scalar::Any),
                list: Some(List { items: Self::Opaque, kind: &ATOMIC }),
                map: Some(Fields { of: None, others: Some(Self::Deduced), atomic: false }),
            },
            Self::Opaque => Atom {
                scalar: Some(Scalar::Any),
                list: Some(List { items: Self::Opaque, kind: &ATOMIC }),
                map: Some(Fields { of: None, others: Some(Self::Opaque), atomic: true }),
            },
            Self::Declared(declared) => declared.atom(),
        }
    }
}

impl<'s> Declared<'s> {
    fn atom(self) -> Atom<'s> {
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        match self.schema.kind {
            Kind::Any => {
                Atom { scalar: Some(Scalar::Any), list: Some(self.list()), map: Some(self.fields()) }
            }
            Kind::Object => Atom { map: Some(self.fields()), ..Atom::default() },
            Kind::Array => Atom { list: Some(self.list()), ..Atom::default() },
            Kind::Integer | Kind::Number => scalar(Scalar::Numeric),
            Kind::Boolean => scalar(Scalar::Boolean),
            Kind::IntOrString => scalar(Scalar::Any),
            Kind::String => match self.schema.limits.format.as_deref() {
                None | Some("" | "byte") => scalar(Scalar::Text),
                Some(_) => scalar(Scalar::Any),
            },
        }
    }

    fn list(self) -> List<'s> {
        let items = self.schema.items.as_deref();
        List {
            items: items.map_or(Type::Opaque, |items| Type::declared(items, self.open, false)),
            kind: &self.schema.list,
        }
    }

    fn fields(self) -> Fields<'s> {
        let others = match &self.schema.additional {
            Some(additional) if **additional == Schema::default() => Some(Type::Deduced),
            Some(additional) => Some(Type::declared(additional, self.open, false)),
            None if self.open || self.schema.properties.is_empty() => Some(Type::Deduced),
            None => None,
        };
        Fields { of: Some(self), others, atomic: self.schema.atomic_map }
    }
}

impl<'s> Atom<'s> {
    /// Which of its possible forms `value` has.
    pub(super) fn form(&self, value: &Value) -> Form {
        match value {
            Value::Null => Form::Open,
            Value::Array(_) if self.list.is_some() => Form::List,
            Value::Object(_) if self.map.is_some() => Form::Map,
            Value::Number(_) | Value::String(_) | Value::Bool(_) if self.scalar.is_some() => Form::Scalar,
            _ => Form::Open,
        }
    }

    /// How a value of that form is walked: an open one as an object if it may be one, as a leaf, or as a list.
    pub(super) fn chosen(&self, form: Form) -> Option<Chosen<'s>> {
        match form {
            Form::Map => self.map.map(Chosen::Map),
            Form::Scalar => self.scalar.map(Chosen::Scalar),
            Form::List => self.list.map(Chosen::List),
            Form::Open => {
                self.map.map(Chosen::Map).or(self.scalar.map(Chosen::Scalar)).or(self.list.map(Chosen::List))
            }
        }
    }
}

/// One form of an [`Atom`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen<'s> {
    Scalar(Scalar),
    List(List<'s>),
    Map(Fields<'s>),
}

impl<'s> Fields<'s> {
    /// Is this field declared by name?
    pub(super) fn declares(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    /// The type of a field; none when it must not be there.
    pub(super) fn field(&self, name: &str) -> Option<Type<'s>> {
        self.named(name).or(self.others)
    }

    /// The type of what is not declared by name.
    pub(super) fn other(&self) -> Option<Type<'s>> {
        self.others
    }

    /// Are there no declared fields, and may anything be there?
    pub(super) fn free(&self) -> bool {
        let declares =
            self.of.is_some_and(|declared| declared.whole || !declared.schema.properties.is_empty());
        !declares && matches!(self.others, Some(Type::Deduced))
    }

    fn named(&self, name: &str) -> Option<Type<'s>> {
        let declared = self.of?;
        if declared.whole {
            // A custom resource's schema need not say what every object has.
            let meta = builtin::object_meta();
            let own = declared.schema.properties.get(name);
            match name {
                "metadata" if own.is_none_or(|own| !own.properties.contains_key("labels")) => {
                    return Some(Type::declared(meta, false, false));
                }
                "apiVersion" | "kind" if own.is_none() => {
                    return meta.properties.get("name").map(|text| Type::declared(text, false, false));
                }
                _ => {}
            }
        }
        let property = declared.schema.properties.get(name)?;
        Some(Type::declared(property, declared.open, false))
    }
}

impl List<'_> {
    /// What tells `item` apart from the others, or why nothing does.
    pub(super) fn element(&self, item: &Value) -> Result<Element, String> {
        match self.kind {
            ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            ListKind::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(Element::Value(Item(scalar.clone()))),
            },
            ListKind::Map(keys) => self.keyed(keys, item),
        }
    }

    fn keyed(&self, keys: &[String], item: &Value) -> Result<Element, String> {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        // A key that is neither given nor has a default is left out, which makes it another item.
        let found = keys.iter().filter_map(|key| {
            let value = fields.get(key).cloned().or_else(|| self.default_of(key));
            Some((key.clone(), value?))
        });
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {} (and doesn't have default values for any key fields)",
                go::quoted_list(keys)
            ));
        }
        Ok(Element::keyed(found))
    }

    fn default_of(&self, key: &str) -> Option<Value> {
        let Type::Declared(declared) = self.items else { return None };
        let field = declared.schema.properties.get(key)?;
        let zero = match &field.encoding {
            Encoding::Always(zero) => Some(zero),
            _ => None,
        };
        field.default.as_ref().or(zero).filter(|default| !default.is_null()).cloned()
    }
}
