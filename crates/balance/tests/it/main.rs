//! What holds for every pool and every table.

mod ladder;
mod shares;
mod tables;
