// Reports connections to the server for its connection log: SSH sessions, and terminals and ports over the private network. Connections
// through the server's own tunnel need no report. A report that cannot be delivered is dropped (rules CG-2, CG-4).
import type { Clock } from "#base/clock.ts";
import { uuid, uuidToBytes } from "#base/ids.ts";
import { Connection_Action as Action, Connection_Type as Type } from "#src/wire/gen/agent_pb.ts";
import { toTimestamp } from "#src/wire/index.ts";
import type { SessionKind } from "../ssh/session-counts.ts";
import type { Reports } from "./reports.ts";

export type ReportedKind = SessionKind | "terminal" | { readonly port: number };

/** Reports the end of a connection, with the reason and the program's exit code. Further calls have no effect. */
export type ReportEnd = (reason: string, code?: number) => void;

/** Maximum number of pending reports. While there are more, new connections are not reported. */
const MAX_PENDING_REPORTS = 200;

const CONNECTION_TYPES = {
  ssh: Type.SSH,
  vscode: Type.VSCODE,
  jetbrains: Type.JETBRAINS,
  terminal: Type.RECONNECTING_PTY,
} as const;

export class ConnectionReports {
  readonly #reports: Pick<Reports, "add">;
  readonly #clock: Pick<Clock, "now">;
  #pendingCount = 0;

  constructor({ reports, clock }: { reports: Pick<Reports, "add">; clock: Pick<Clock, "now"> }) {
    this.#reports = reports;
    this.#clock = clock;
  }

  /** Reports the start of a connection from this address of the private network. */
  begin(kind: ReportedKind, ip: string): ReportEnd {
    if (this.#pendingCount >= MAX_PENDING_REPORTS) return () => {};
    const common = {
      id: uuidToBytes(uuid()),
      ip,
      type: typeof kind === "string" ? CONNECTION_TYPES[kind] : Type.TYPE_UNSPECIFIED,
      appName: typeof kind === "string" ? "" : `port:${kind.port}`,
    };
    this.#send({ ...common, action: Action.CONNECT });
    let hasEnded = false;
    return (reason, code = 0) => {
      if (hasEnded) return;
      hasEnded = true;
      this.#send({ ...common, action: Action.DISCONNECT, reason, statusCode: code });
    };
  }

  #send(report: object): void {
    this.#pendingCount += 1;
    const connection = { ...report, timestamp: toTimestamp(this.#clock.now()) };
    const call = this.#reports.add("a connection", (api, signal) => api.reportConnection({ connection }, signal));
    void call.then(() => {
      this.#pendingCount -= 1;
    });
  }
}
