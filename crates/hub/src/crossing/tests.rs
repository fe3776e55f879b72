//! MultiClusterServices in a whole hub.
