//! The admin's kubeconfig, everything inline.

use super::Pki;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// JSON is YAML: kubectl reads it, and rewrites it as it likes.
pub(super) fn text(pki: &Pki, url: &str) -> String {
    let encoded = |text: &str| STANDARD.encode(text);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "atoll",
            "cluster": { "server": url, "certificate-authority-data": encoded(&pki.ca) },
        }],
        "users": [{
            "name": "atoll-admin",
            "user": {
                "client-certificate-data": encoded(&pki.admin.certificate),
                "client-key-data": encoded(&pki.admin.key),
            },
        }],
        "contexts": [{ "name": "atoll", "context": { "cluster": "atoll", "user": "atoll-admin" } }],
        "current-context": "atoll",
    });
    format!("{config:#}\n")
}
