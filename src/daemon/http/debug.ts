// Debug information (facts/tailnet-peer 6): the connection to the server and this machine's interfaces, the manifest without secrets, the
// daemon's log, its peers, and Prometheus metrics. Rule PT-9.
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { toRfc3339 } from "#base/clock.ts";
import { recentLog } from "#base/recent-log.ts";
import { RELAY_REGION } from "#src/tailnet/index.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { omitManifestSecrets } from "#src/wire/index.ts";
import type { OpenConnections } from "../connection/stats.ts";

export type DebugOptions = {
  manifest: Manifest;
  /** Measures the round trip to the server in milliseconds; undefined if unknown. */
  roundTrip(): Promise<number | undefined>;
  open(): OpenConnections;
  /** Returns the peers with a tunnel; empty if the daemon has not joined a network. */
  remotes(): readonly RemoteShown[];
};

/** A peer of the private network, for debugging. */
export type RemoteShown = {
  readonly id: string;
  /** Its public key in base64. */
  readonly key: string;
  /** Number of completed handshakes; with 0, no packet has arrived yet. */
  readonly handshakes: number;
  readonly connections: number;
  /** Bytes waiting to be read. */
  readonly held: number;
};

/** Number of the newest log lines that are returned. */
const MAX_LOG_LINES = 2_000;

const OK_STATUS = { severity: "ok", warnings: null, dismissed: false } as const;
const WARNING_STATUS = { severity: "warning", dismissed: false } as const;
/** The minimum MTU for a tunnel's packets. */
const MIN_MTU = 1_378;

export const createDebugRoutes = (options: DebugOptions) => ({
  "/api/v0/netcheck": { GET: async () => Response.json(await describeNetcheck(options)) },
  "/debug/logs": { GET: () => new Response(formatLog(), { headers: { "content-type": "text/plain; charset=utf-8" } }) },
  "/debug/magicsock": {
    GET: () => Response.json({ region: RELAY_REGION, direct: false, peers: options.remotes() }),
  },
  "/debug/manifest": { GET: () => Response.json(omitManifestSecrets(options.manifest)) },
  "/debug/prometheus": {
    GET: async () =>
      new Response(await formatMetrics(options), { headers: { "content-type": "text/plain; version=0.0.4" } }),
  },
});

/** Returns what the daemon has logged since its start, with possible secrets removed. */
const formatLog = (): string =>
  recentLog
    .listAfter(0, MAX_LOG_LINES)
    .map(({ at, level, area, text }) => `${toRfc3339(at)} ${level.toUpperCase()} ${area}: ${text}\n`)
    .join("");

/** All traffic goes through the relay, which has the server's address. */
const describeNetcheck = async ({ roundTrip }: DebugOptions) => {
  const round_trip_ms = await roundTrip();
  const latency = round_trip_ms === undefined ? {} : { [`${RELAY_REGION}-v4`]: round_trip_ms / 1_000 };
  return {
    ...OK_STATUS,
    net_info: { UDP: false, PreferredDERP: RELAY_REGION, DERPLatency: latency },
    interfaces: listInterfaces(),
  };
};

const listInterfaces = () => {
  const interfaces = Object.entries(networkInterfaces()).map(([name, addresses = []], i) => ({
    id: i + 1,
    name,
    mtu: readMtu(name),
    addresses: addresses.map(({ cidr }) => cidr).filter((one) => one !== null),
  }));
  const lowMtu = interfaces.filter(({ mtu }) => mtu > 0 && mtu < MIN_MTU);
  const warnings = lowMtu.map(({ name, mtu }) => ({
    code: "EIF01",
    message: `Network interface ${name} has MTU ${mtu}, less than ${MIN_MTU}.`,
  }));
  return { ...(lowMtu.length > 0 ? { ...WARNING_STATUS, warnings } : OK_STATUS), interfaces };
};

/** Returns 0 if the system does not report it. */
const readMtu = (name: string): number => {
  try {
    return Number(readFileSync(`/sys/class/net/${name}/mtu`, "utf8")) || 0;
  } catch {
    return 0;
  }
};

const formatMetrics = async ({ roundTrip, open }: DebugOptions): Promise<string> => {
  const round_trip_ms = (await roundTrip()) ?? Number.NaN;
  const { terminals, streams, sessions } = open();
  const gauges: [string, string, number | undefined][] = [
    ["agent_resident_memory_bytes", "Memory of the daemon.", process.memoryUsage().rss],
    ["agent_server_round_trip_seconds", "To the server and back.", round_trip_ms / 1_000],
    ["agent_terminal_clients", "Clients of terminals.", terminals],
    ["agent_forwarded_streams", "Streams to ports of the workspace.", streams],
  ];
  const lines = gauges.flatMap(([name, help, value]) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    `${name} ${value}`,
  ]);
  const sessionLines = Object.entries(sessions).map(([kind, count]) => `agent_ssh_sessions{kind="${kind}"} ${count}`);
  return [
    ...lines,
    "# HELP agent_ssh_sessions SSH sessions.",
    "# TYPE agent_ssh_sessions gauge",
    ...sessionLines,
    "",
  ].join("\n");
};
