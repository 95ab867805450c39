// `slipway netcheck`: whether the server and its relay are reachable, and their latency, as JSON in the form that editors' plug-ins show
// (docs/editors.md). There is one relay, which is part of the server.
import { networkInterfaces } from "node:os";
import type { Clock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import type { Client } from "#src/client.ts";
import { createKeyPair, RelayLink } from "#src/tailnet/index.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";

const TIMEOUT_MS = 10_000;
const SLOW_THRESHOLD_MS = 500;
const PROBE_COUNT = 3;

export const run: RunVerb = async (input) => {
  const { words, value } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("netcheck", input, value, async ({ client }) => {
    const report = await checkNetwork(input, client);
    input.print(JSON.stringify(report, null, 2));
    return report.derp.severity === "error" ? EXIT.failed : EXIT.ok;
  });
};

type Severity = "ok" | "warning" | "error";
type Warning = { code: string; message: string };

/** Measures what is reachable, and its latency. */
export const checkNetwork = async (input: VerbInput, client: Client) => {
  const startedAt = input.clock.monotonic();
  const { version } = await client.get("/api/v2/buildinfo");
  const latencyMs = input.clock.monotonic() - startedAt;
  const { derp_map } = await client.get("/api/v2/workspaceagents/connection");
  const [region] = Object.values(derp_map.regions);
  const tripMs = await measureRelayTrip(client, input.clock);
  const error = tripMs === undefined ? `The relay did not forward a message within ${TIMEOUT_MS / 1_000} s.` : null;
  const warnings: Warning[] =
    tripMs !== undefined && tripMs > SLOW_THRESHOLD_MS
      ? [{ code: "EDERP01", message: `The relay is slow: the round trip takes ${Math.round(tripMs)} ms.` }]
      : [];
  const severity: Severity = error !== null ? "error" : warnings.length > 0 ? "warning" : "ok";
  const id = region?.regionID ?? 0;
  return {
    server: { url: client.url.href, version, latency_ms: latencyMs },
    derp: {
      severity,
      warnings,
      error,
      regions: {
        [id]: {
          severity,
          warnings,
          error,
          region: { RegionID: id, RegionName: region?.regionName ?? "", EmbeddedRelay: region?.embeddedRelay ?? true },
          node_reports: [
            {
              can_exchange_messages: tripMs !== undefined,
              round_trip_ping_ms: Math.round(tripMs ?? 0),
              // All traffic goes through the relay: there is no address discovery.
              stun: { Enabled: false, CanSTUN: false },
              node: { STUNOnly: false },
            },
          ],
        },
      },
      netcheck: {
        UDP: false,
        IPv4: hasFamily("IPv4"),
        IPv6: hasFamily("IPv6"),
        PreferredDERP: tripMs === undefined ? 0 : id,
        RegionLatency: tripMs === undefined ? {} : { [id]: Math.round(tripMs * 1e6) },
      },
      netcheck_err: null,
    },
    interfaces: {
      severity: "ok" as Severity,
      warnings: [] as Warning[],
      error: null,
      interfaces: listInterfaces(input),
    },
  };
};

/** Returns the shortest of several round trips through the relay in milliseconds; undefined if no message arrives. */
const measureRelayTrip = async ({ url, extraHeaders: headers }: Client, clock: Clock): Promise<number | undefined> => {
  const [near, far] = [createKeyPair(), createKeyPair()];
  let received = Promise.withResolvers<void>();
  const common = { url, headers, clock, random: systemRandom };
  const from = new RelayLink({ ...common, key: near, receive: () => {} });
  const to = new RelayLink({ ...common, key: far, receive: () => received.resolve() });
  const timeout = pause(clock, TIMEOUT_MS).then(() => "late" as const);
  try {
    if ((await Promise.race([Promise.all([from.ready, to.ready]), timeout])) === "late") return undefined;
    let shortestMs: number | undefined;
    for (let i = 0; i < PROBE_COUNT; i++) {
      received = Promise.withResolvers();
      const startedAt = clock.monotonic();
      from.send(far.public, new Uint8Array([i]));
      if ((await Promise.race([received.promise, timeout])) === "late") return shortestMs;
      shortestMs = Math.min(shortestMs ?? Number.POSITIVE_INFINITY, clock.monotonic() - startedAt);
    }
    return shortestMs;
  } finally {
    from.close();
    to.close();
  }
};

const hasFamily = (family: "IPv4" | "IPv6"): boolean =>
  Object.values(networkInterfaces()).some((all) => all?.some((one) => one.family === family && !one.internal));

const listInterfaces = (input: VerbInput) =>
  Object.entries(networkInterfaces()).map(([name, all = []]) => ({
    name,
    mtu: readMtu(input, name),
    addresses: all.flatMap(({ cidr }) => cidr ?? []),
  }));

/** Returns 0 if the system does not provide the MTU in a file. */
const readMtu = ({ readFile }: VerbInput, name: string): number => {
  try {
    return Number(readFile(`/sys/class/net/${name}/mtu`)) || 0;
  } catch {
    return 0;
  }
};
