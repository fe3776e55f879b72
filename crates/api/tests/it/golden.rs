//! The rendered manifests, as a reviewer sees a change to them.

use std::path::Path;

use atoll_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const UPDATE: &str = "ATOLL_UPDATE_GOLDEN";

#[test]
fn rendered_crds_are_the_golden_file() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/crds.yaml");
    let rendered = crds::yaml(&crds::all()).unwrap();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&golden, &rendered).unwrap();
    }
    let kept = std::fs::read_to_string(&golden).unwrap_or_default();
    let line = kept.lines().zip(rendered.lines()).take_while(|(kept, new)| kept == new).count() + 1;
    assert!(
        kept == rendered,
        "the CRDs differ from tests/golden/crds.yaml from line {line} on. If the change is wanted, raise the revision \
         in src/revision.rs (members keep the old CRD otherwise) and run `{UPDATE}=1 cargo test -p atoll-api golden`"
    );
}

#[test]
fn rendered_crds_read_back_the_same() {
    let rendered = crds::yaml(&crds::all()).unwrap();
    let read: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&rendered).unwrap();
    assert_eq!(read, crds::all());
}
