//! What no plan may do.
