// What those ask who look for a fault (facts/tailnet-peer 6): the way to the server and this machine's interfaces, the manifest without its secrets,
// the daemon's log, whom it has tunnels with, and figures of it for Prometheus. Rule PT-9.
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { rfc3339 } from "#base/clock.ts";
import { recentLog } from "#base/recent-log.ts";
import { RELAY_REGION } from "#src/tailnet/index.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { manifestWithoutSecrets } from "#src/wire/index.ts";
import type { OpenConnections } from "../connection/stats.ts";

export type DebugOptions = {
  manifest: Manifest;
  /** Milliseconds to the server and back; undefined when nobody can tell. */
  roundTrip(): Promise<number | undefined>;
  open(): OpenConnections;
  /** Whom the daemon has a tunnel with; empty as long as it is in no network. */
  remotes(): readonly RemoteShown[];
};

/** Another peer of the private network, as it is shown to who looks for a fault. */
export type RemoteShown = {
  readonly id: string;
  /** Its public key in base64. */
  readonly key: string;
  /** How often keys were agreed on; 0: nothing has come through yet. */
  readonly handshakes: number;
  readonly connections: number;
  /** Bytes that wait to be read. */
  readonly held: number;
};

/** Lines of the daemon's log, the newest. */
const LOG_LINES = 2_000;

const OK = { severity: "ok", warnings: null, dismissed: false } as const;
const WARNING = { severity: "warning", dismissed: false } as const;
/** What a tunnel's packets need. */
const MIN_MTU = 1_378;

export const debugRoutes = (options: DebugOptions) => ({
  "/api/v0/netcheck": { GET: async () => Response.json(await netcheck(options)) },
  "/debug/logs": { GET: () => new Response(logLines(), { headers: { "content-type": "text/plain; charset=utf-8" } }) },
  "/debug/magicsock": {
    GET: () => Response.json({ region: RELAY_REGION, direct: false, peers: options.remotes() }),
  },
  "/debug/manifest": { GET: () => Response.json(manifestWithoutSecrets(options.manifest)) },
  "/debug/prometheus": {
    GET: async () => new Response(await figures(options), { headers: { "content-type": "text/plain; version=0.0.4" } }),
  },
});

/** What the daemon itself has logged since its start; what could be a secret is taken out. */
const logLines = (): string =>
  recentLog
    .after(0, LOG_LINES)
    .map(({ at, level, area, text }) => `${rfc3339(at)} ${level.toUpperCase()} ${area}: ${text}\n`)
    .join("");

/** Everything goes through the relay, which is reached as the server is. */
const netcheck = async ({ roundTrip }: DebugOptions) => {
  const round_trip_ms = await roundTrip();
  const latency = round_trip_ms === undefined ? {} : { [`${RELAY_REGION}-v4`]: round_trip_ms / 1_000 };
  return {
    ...OK,
    net_info: { UDP: false, PreferredDERP: RELAY_REGION, DERPLatency: latency },
    interfaces: interfaces(),
  };
};

const interfaces = () => {
  const found = Object.entries(networkInterfaces()).map(([name, addresses = []], i) => ({
    id: i + 1,
    name,
    mtu: readMtu(name),
    addresses: addresses.map(({ cidr }) => cidr).filter((one) => one !== null),
  }));
  const small = found.filter(({ mtu }) => mtu > 0 && mtu < MIN_MTU);
  const warnings = small.map(({ name, mtu }) => ({
    code: "EIF01",
    message: `Network interface ${name} has MTU ${mtu}, less than ${MIN_MTU}.`,
  }));
  return { ...(small.length > 0 ? { ...WARNING, warnings } : OK), interfaces: found };
};

/** 0 where the system does not say. */
const readMtu = (name: string): number => {
  try {
    return Number(readFileSync(`/sys/class/net/${name}/mtu`, "utf8")) || 0;
  } catch {
    return 0;
  }
};

const figures = async ({ roundTrip, open }: DebugOptions): Promise<string> => {
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
  const ofKinds = Object.entries(sessions).map(([kind, count]) => `agent_ssh_sessions{kind="${kind}"} ${count}`);
  return [...lines, "# HELP agent_ssh_sessions SSH sessions.", "# TYPE agent_ssh_sessions gauge", ...ofKinds, ""].join(
    "\n",
  );
};
