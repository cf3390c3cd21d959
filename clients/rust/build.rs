//! Makes messages and clients of the contract, with a protoc that comes as a crate.

use std::error::Error;

const CONTRACT: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CONTRACT}"); // Cargo looks no further than this folder by itself
    let files = ["orders", "errors"].map(|name| format!("{CONTRACT}/ordergateway/v1/{name}.proto"));
    let folders = [
        CONTRACT.to_owned(),
        protoc_bin_vendored::include_path()?.display().to_string(),
    ];
    let mut prost = tonic_prost_build::Config::new();
    prost
        .protoc_executable(protoc_bin_vendored::protoc_bin_path()?)
        .enable_type_names(); // by which the detail of a refusal is known
    tonic_prost_build::configure()
        .build_server(false)
        .compile_with_config(prost, &files, &folders)?;
    Ok(())
}
