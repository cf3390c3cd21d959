/** Checks the gateway from Node: `node dist/main.js connect | connect-json | grpc`. Where it is, the environment says. */

import { readFileSync } from "node:fs";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { checkAll } from "./checks.js";
import { bearer, Gateway } from "./gateway.js";

/** The ways to speak to the gateway; gRPC is on a port of its own, everything else on the HTTP port. */
const PROTOCOLS = ["connect", "connect-json", "grpc"];

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

/** `ca`: the PEM of the CA that signed the gateway's certificate; absent: the public ones. */
function transport(protocol: string, baseUrl: string, token: string, ca?: Buffer): Transport {
  const common = { baseUrl, interceptors: [bearer(token)], nodeOptions: ca ? { ca } : {} };
  if (protocol === "grpc") {
    // The gateway ends a connection that pings more often than every 5 s.
    return createGrpcTransport({ ...common, pingIntervalMs: 10_000, pingTimeoutMs: 5_000, pingIdleConnection: true });
  }
  return createConnectTransport({ ...common, httpVersion: "1.1", useBinaryFormat: protocol === "connect" });
}

const protocol = process.argv[2] ?? "";
if (!PROTOCOLS.includes(protocol)) throw new Error(`usage: node dist/main.js ${PROTOCOLS.join(" | ")}`);

/** The variable of an address: ORDER_GATEWAY_GRPC, ORDER_GATEWAY_TLS_HTTP, and so on. */
function address(way: string): string {
  if (protocol !== "grpc") return setting(`ORDER_GATEWAY_${way}HTTP`);
  return `${way === "TLS_" ? "https" : "http"}://${setting(`ORDER_GATEWAY_${way}GRPC`)}`;
}

const token = setting("ORDER_GATEWAY_TOKEN");
const ca = readFileSync(setting("ORDER_GATEWAY_CA"));
const ways = {
  plain: new Gateway(transport(protocol, address(""), token)),
  wrongToken: new Gateway(transport(protocol, address(""), "a-token-that-nobody-knows")),
  lossy: new Gateway(transport(protocol, address("LOSSY_"), token)),
  tls: new Gateway(transport(protocol, address("TLS_"), token, ca)),
  tlsOfStrangers: new Gateway(transport(protocol, address("TLS_"), token), 1_000),
};
const checks = await checkAll(ways, setting("ORDER_GATEWAY_SHOP"), `ts-${protocol}-${Date.now()}`);
for (const failure of checks.failures) console.error(`failed: ${failure}`);
console.log(checks.summary);
process.exit(checks.failures.length > 0 ? 1 : 0); // connections are kept open for the next call, and there is none
