/** What the gateway said when a call failed, and whether the same call may be sent again. */

import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, type ErrorDetail } from "./gen/ordergateway/v1/errors_pb.js";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** How often a call is sent again where something other than the gateway says that it cannot be served. */
const TRIES_WITHOUT_A_GATEWAY = 3;

/**
 * The gateway's own word for a call that failed: branch on its `reason`. Undefined where the gateway did not answer:
 * then nothing is known of what became of the call, whatever the code says.
 */
export function refusalOf(error: unknown): ErrorDetail | undefined {
  return ConnectError.from(error).findDetails(ErrorDetailSchema)[0];
}

/**
 * How many milliseconds to wait before the same call is sent again; undefined: it is not. `tries` counts those that
 * failed before this one. The pause is jittered, so that many clients do not come back at the same moment.
 */
export function pauseBeforeRetry(error: unknown, tries: number): number | undefined {
  const backoff = (0.5 + Math.random() / 2) * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);
  const refusal = refusalOf(error);
  const { code } = ConnectError.from(error);
  if (refusal) {
    if (refusal.retryAfter) return Math.max(backoff, durationMs(refusal.retryAfter));
    return code === Code.Unavailable ? backoff : undefined;
  }
  // A lost connection shows as one of many codes, so only two of them mean something: a proxy or an older server.
  const nobodyServesThis = code === Code.Unimplemented || code === Code.ResourceExhausted;
  return nobodyServesThis && tries >= TRIES_WITHOUT_A_GATEWAY ? undefined : backoff;
}
