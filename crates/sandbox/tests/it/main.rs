//! A member's parts on a Kubernetes API in this process.
