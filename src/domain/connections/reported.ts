// Connections that agents tell of: SSH sessions, editors and terminals that come over the private network, and ports of our own daemon. Who
// it was is known by the peer that has this address and a tunnel to this agent; an address that two of them claim says nothing (rule CG-4).
import type { ConnectionType } from "#schema/connections.ts";
import type { DomainContext } from "../context.ts";
import type { ConnectedBy } from "./log.ts";

export type ReportedConnection = {
  readonly connection_id: string;
  readonly isOver: boolean;
  readonly type: ConnectionType | undefined;
  /** What newer agents say in the place of the type. */
  readonly app_name: string;
  /** Milliseconds since 1970, by the agent's clock. */
  readonly at: number | undefined;
  readonly ip: string;
  readonly status_code: number;
  readonly reason: string;
};

/** A clock that is further off is not believed. */
const CLOCK_MS = 60 * 60_000;

type Deps = Pick<DomainContext, "clock" | "connections" | "tailnet" | "dialer">;

/** Resolves when it is on disk. */
export const noteReported = async (ctx: Deps, agent_id: string, report: ReportedConnection): Promise<void> => {
  const { connection_id, reason, status_code } = report;
  const now = ctx.clock.now();
  const at = report.at !== undefined && Math.abs(now - report.at) <= CLOCK_MS ? Math.min(report.at, now) : now;
  if (report.isOver) {
    await ctx.connections.reportedEnd({ agent_id, connection_id }, reason, status_code, at);
    return;
  }
  // The server's own terminals are noted by the server, which knows for whom they are.
  if (ctx.dialer.network.isOwn(report.ip)) return;
  const by = whoAt(ctx, agent_id, report.ip);
  await ctx.connections.reported({ agent_id, connection_id, at, ...by, ...toKind(report) });
};

const whoAt = ({ tailnet }: Deps, agent_id: string, ip: string): ConnectedBy =>
  tailnet.coordinator.holderAt(agent_id, ip) ?? { user_id: null, ip, user_agent: "" };

const TYPES: Readonly<Record<string, ConnectionType>> = {
  ssh: "ssh",
  vscode: "vscode",
  jetbrains: "jetbrains",
  reconnecting_pty: "reconnecting_pty",
};

/** An editor that has no type of its own comes by SSH and says its name; our daemon says `port:8080` of ports. */
const toKind = ({ type = "ssh", app_name }: ReportedConnection): { type: ConnectionType; target: string } => {
  const name = app_name.toLowerCase().replaceAll("-", "_");
  const port = /^port:(\d{1,5})$/.exec(name)?.[1];
  if (port !== undefined) return { type: "port_forwarding", target: port };
  return { type: TYPES[name] ?? type, target: TYPES[name] || name === "" ? "" : app_name };
};
