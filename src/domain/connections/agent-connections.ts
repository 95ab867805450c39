// Records connections that agents report: SSH sessions, editors and terminals over the private network, and ports of Slipway's own daemon.
// A connection is attributed to the user whose network peer has the reported address and a tunnel to the agent. If two peers claim the
// address, the user is unknown (rule CG-4).
import type { ConnectionType } from "#schema/connections.ts";
import type { DomainContext } from "../context.ts";
import type { ConnectedBy } from "./log.ts";

export type ReportedConnection = {
  readonly connection_id: string;
  readonly isOver: boolean;
  readonly type: ConnectionType | undefined;
  /** Sent by newer agents in place of the type. */
  readonly app_name: string;
  /** Milliseconds since 1970, by the agent's clock. */
  readonly at: number | undefined;
  readonly ip: string;
  readonly status_code: number;
  readonly reason: string;
};

/** An agent's clock that is further off is ignored. */
const MAX_CLOCK_SKEW_MS = 60 * 60_000;

type Deps = Pick<DomainContext, "clock" | "connections" | "tailnet" | "dialer">;

/** Returns the time that an agent reports; `now` if its clock is too far off or ahead. */
export const correctTime = (reported: number | undefined, now: number): number =>
  reported !== undefined && Math.abs(now - reported) <= MAX_CLOCK_SKEW_MS ? Math.min(reported, now) : now;

/** Records the report. Resolves when it is stored. */
export const noteReported = async (ctx: Deps, agent_id: string, report: ReportedConnection): Promise<void> => {
  const { connection_id, reason, status_code } = report;
  const now = ctx.clock.now();
  const time = correctTime(report.at, now);
  if (report.isOver) {
    await ctx.connections.recordReportedEnd({ agent_id, connection_id }, reason, status_code, time);
    return;
  }
  // The server records its own terminals itself, because it knows their users.
  if (ctx.dialer.network.isOwn(report.ip)) return;
  const by = findConnectedBy(ctx, agent_id, report.ip);
  await ctx.connections.recordReported({ agent_id, connection_id, at: time, ...by, ...toKind(report) });
};

const findConnectedBy = ({ tailnet }: Deps, agent_id: string, ip: string): ConnectedBy =>
  tailnet.coordinator.findHolder(agent_id, ip) ?? { user_id: null, ip, user_agent: "" };

const TYPES: Readonly<Record<string, ConnectionType>> = {
  ssh: "ssh",
  vscode: "vscode",
  jetbrains: "jetbrains",
  reconnecting_pty: "reconnecting_pty",
};

/** An editor without its own type connects by SSH and sends its name; Slipway's daemon sends `port:8080` for ports. */
const toKind = ({ type = "ssh", app_name }: ReportedConnection): { type: ConnectionType; target: string } => {
  const name = app_name.toLowerCase().replaceAll("-", "_");
  const port = /^port:(\d{1,5})$/.exec(name)?.[1];
  if (port !== undefined) return { type: "port_forwarding", target: port };
  return { type: TYPES[name] ?? type, target: TYPES[name] || name === "" ? "" : app_name };
};
