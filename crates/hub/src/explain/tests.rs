//! Answers of a leader that was told facts and has planned, with the real engine.

#[path = "../../../engine/tests/it/drawn.rs"]
mod drawn;
#[path = "../../../engine/src/fixture.rs"]
mod fixture;
mod properties;
mod set;
mod situations;
mod table;
