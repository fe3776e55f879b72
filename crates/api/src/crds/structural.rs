//! Takes off a derived schema what the published ones do not have.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Drops titles, the line breaks of our source in descriptions, and `nullable`, which the derive puts on every
/// `Option`: a field is there or absent, never null.
pub(super) fn tidy(crd: &mut CustomResourceDefinition) {
    each_schema(crd, tidy_schema);
}

/// Lets an object have no `spec`; the derive demands one.
pub(super) fn let_spec_be_absent(crd: &mut CustomResourceDefinition) {
    each_schema(crd, |root| root.required = None);
}

fn each_schema(crd: &mut CustomResourceDefinition, change: impl Fn(&mut JSONSchemaProps)) {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()).for_each(change);
}

fn tidy_schema(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    schema.description = schema.description.take().map(|text| text.replace('\n', " "));
    schema.properties.iter_mut().flat_map(|map| map.values_mut()).for_each(tidy_schema);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => tidy_schema(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy_schema),
        None => {}
    }
    match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => tidy_schema(values),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => {}
    }
}
