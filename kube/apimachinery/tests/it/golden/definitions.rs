//! CRDs and policies that can't be.

use super::{Differences, answers, told};
use atoll_apimachinery::admission::Policy;
use atoll_apimachinery::schema;

#[test]
fn schemas_are_refused_as_the_server_refuses_them() {
    let mut differences = Differences::default();
    for answer in answers("definitions") {
        let document = &answer.sent()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let ours = told(&schema::structural(document, "spec.validation.openAPIV3Schema"));
        differences.compare(answer.name(), &ours, &answer.causes());
        differences.compare(answer.name(), &ours.is_empty(), &(answer.code() == 201));
    }
}

#[test]
fn policies_are_refused_as_the_server_refuses_them() {
    let mut differences = Differences::default();
    for answer in answers("policies") {
        if answer.path().contains("/validatingadmissionpolicies") {
            let ours = Policy::compile(answer.sent()).err().map(|errors| told(&errors)).unwrap_or_default();
            differences.compare(answer.name(), &ours, &answer.causes());
        }
    }
}
