// The Prometheus listener. It has an address of its own (setting metrics_address) because it requires no authentication. Answers only `GET
// /metrics`.
import { isIP } from "node:net";
import { type Address, address } from "#base/config/kinds.ts";
import { log } from "#base/log.ts";
import type { Metrics } from "#base/metrics.ts";
import { parseHostName } from "#base/network/host-name.ts";

/** Thrown when the address cannot be used; the message says which one and why. */
export class MetricsAddressError extends Error {
  override readonly name = "MetricsAddressError";
}

export type MetricsListener = { url: URL; stop(): Promise<void> };

/** Listens until stopped; port 0 picks any. `names` are the hosts of this server (setting allowed_hosts). Throws `MetricsAddressError`. */
export const listenForScrapes = (
  metrics: Metrics,
  listenAddress: Address,
  names: readonly string[],
): MetricsListener => {
  try {
    return listen(metrics, listenAddress, new Set([...names, listenAddress.host.toLowerCase()]));
  } catch (error) {
    const code = String((error as { code?: unknown }).code);
    throw new MetricsAddressError(
      `metrics_address: ${address.print(listenAddress)} cannot be used (${code}); choose another`,
    );
  }
};

/** Rejects DNS rebinding: another site's page can reach this listener through its own hostname, but not through an IP address. */
const isAllowedHost = (host: string, names: ReadonlySet<string>): boolean => {
  const name = parseHostName(host);
  return name !== undefined && (names.has(name) || isIP(name.replace(/^\[|\]$/g, "")) !== 0);
};

const listen = (metrics: Metrics, { host, port }: Address, names: ReadonlySet<string>): MetricsListener => {
  const server = Bun.serve({
    hostname: host,
    port,
    async fetch({ url, method, headers: requestHeaders }) {
      if (!isAllowedHost(requestHeaders.get("host") ?? "", names)) {
        const text =
          "This listener does not answer to that host name. Add it to allowed_hosts, or scrape by address.\n";
        return new Response(text, { status: 421 });
      }
      if (new URL(url).pathname !== "/metrics")
        return new Response("Not found; the metrics are at /metrics\n", { status: 404 });
      if (method !== "GET" && method !== "HEAD")
        return new Response("GET only\n", { status: 405, headers: { allow: "GET, HEAD" } });
      const headers = { "content-type": metrics.registry.contentType, "cache-control": "no-store" };
      return new Response(await metrics.text(), { headers });
    },
    error(error) {
      log("metrics").error("scrape failed", { error });
      return new Response("The metrics could not be read.\n", { status: 500 });
    },
  });
  const urlHost = host.includes(":") ? `[${host}]` : host;
  return { url: new URL(`http://${urlHost}:${server.port}/metrics`), stop: () => server.stop(true) };
};
