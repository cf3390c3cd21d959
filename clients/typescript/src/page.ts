/**
 * The same checks from a page, over Connect. The page must come from the gateway's own origin, for instance by a reverse
 * proxy that serves both: the gateway answers no preflight, so a page from elsewhere cannot call it.
 */

import { createConnectTransport } from "@connectrpc/connect-web";
import { checkAll, type Checks } from "./checks.js";
import { bearer, Gateway } from "./gateway.js";

declare global {
  interface Window {
    /** Never put an upstream's token into a page that others open: whoever has it can order. */
    checkGateway: (token: string, shop: string) => Promise<Pick<Checks, "failures" | "summary">>;
  }
}

function gateway(token: string): Gateway {
  return new Gateway(createConnectTransport({ baseUrl: location.origin, interceptors: [bearer(token)] }));
}

window.checkGateway = async (token, shop) => {
  const ways = { plain: gateway(token), wrongToken: gateway("a-token-that-nobody-knows") };
  const { failures, summary } = await checkAll(ways, shop, `page-${Date.now()}`);
  return { failures, summary };
};
