//! What the gateway said when a call failed, and whether the same call may be sent again.

use std::time::Duration;

use prost::Message;
use tonic::{Code, Status};

use crate::pb::ErrorDetail;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a call is sent again where something other than the gateway says that it cannot be served.
const TRIES_WITHOUT_A_GATEWAY: u32 = 3;

/// The gateway's own word for a call that failed: branch on its reason. None where the gateway did not answer: then
/// nothing is known of what became of the call, whatever the code says.
pub fn refusal_of(status: &Status) -> Option<ErrorDetail> {
    let told = tonic_types::pb::Status::decode(status.details()).ok()?;
    told.details
        .iter()
        .find_map(|detail| detail.to_msg::<ErrorDetail>().ok())
}

/// How long to wait before the same call is sent again; None: it is not. `tries` counts those that failed before this
/// one. The pause is jittered, so that many clients do not come back at the same moment.
pub fn pause_before_retry(status: &Status, tries: u32) -> Option<Duration> {
    let longest = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow(tries.min(10)));
    let pause = longest.mul_f64(0.5 + fastrand::f64() / 2.0);
    match (refusal_of(status), status.code()) {
        (Some(refusal), code) => match refusal.retry_after {
            Some(told) => Some(pause.max(Duration::try_from(told).unwrap_or(pause))),
            None => (code == Code::Unavailable).then_some(pause),
        },
        (None, Code::Unimplemented | Code::ResourceExhausted) => {
            (tries < TRIES_WITHOUT_A_GATEWAY).then_some(pause)
        }
        (None, _) => Some(pause), // a lost connection shows as one of many codes
    }
}
