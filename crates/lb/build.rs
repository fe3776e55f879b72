//! Makes Rust of the contract, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = "proto/atoll/lb/v1/provider.proto";
    println!("cargo:rerun-if-changed={file}");
    let descriptors = protox::compile([file], ["proto"])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
