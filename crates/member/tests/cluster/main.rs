//! Tests on real clusters.
fn main() {}
