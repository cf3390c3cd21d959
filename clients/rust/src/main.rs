//! Checks the gateway by tonic. Where it is, the environment says.

mod checks;
mod gateway;
mod refusals;

/// The contract, as build.rs makes it.
#[allow(clippy::all)]
mod pb {
    tonic::include_proto!("ordergateway.v1");
}

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use checks::{Checks, Ways, check_all};
use gateway::{Gateway, SetupError};

fn setting(name: &str) -> Result<String, SetupError> {
    let name = format!("ORDER_GATEWAY_{name}");
    std::env::var(&name).map_err(|error| format!("{name}: {error}").into())
}

fn ways() -> Result<Ways, SetupError> {
    let token = setting("TOKEN")?;
    let plain = format!("http://{}", setting("GRPC")?);
    let lossy = format!("http://{}", setting("LOSSY_GRPC")?);
    let tls = format!("https://{}", setting("TLS_GRPC")?);
    let ca = std::fs::read_to_string(setting("CA")?)?;
    Ok(Ways {
        plain: Gateway::new(&plain, &token, "")?,
        wrong_token: Gateway::new(&plain, "a-token-that-nobody-knows", "")?,
        lossy: Gateway::new(&lossy, &token, "")?,
        tls: Gateway::new(&tls, &token, &ca)?,
        tls_of_strangers: Gateway::new(&tls, &token, "")?.within(Duration::from_secs(1)),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, SetupError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let name = format!("rust-{}", now.as_millis());
    let mut checks = Checks::default();
    if let Err(status) = check_all(&mut checks, &ways()?, &setting("SHOP")?, &name).await {
        checks.failures.push(status.to_string());
    }
    for failure in &checks.failures {
        eprintln!("failed: {failure}");
    }
    println!("{} passed, {} failed", checks.passed, checks.failures.len());
    Ok(ExitCode::from(u8::from(!checks.failures.is_empty())))
}
