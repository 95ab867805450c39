// Reports connections to the server for its connection log: SSH sessions, and terminals and ports over the private network. The server
// already knows about connections through its own tunnel. A report that cannot be delivered is dropped (rules CG-2, CG-4).
import type { Clock } from "#base/clock.ts";
import { uuid, uuidToBytes } from "#base/ids.ts";
import { Connection_Action as Action, Connection_Type as Type } from "#src/wire/gen/agent_pb.ts";
import { toTimestamp } from "#src/wire/index.ts";
import type { SessionKind } from "../ssh/session-counts.ts";
import type { Reports } from "./reports.ts";

export type ReportedKind = SessionKind | "terminal" | { readonly port: number };

/** Called once, with the reason for the end and the program's exit code. */
export type ReportEnd = (reason: string, code?: number) => void;

/** Maximum number of connections whose beginning or end waits to be reported; others are not reported. */
const MAX_WAITING = 200;

const CONNECTION_TYPES = {
  ssh: Type.SSH,
  vscode: Type.VSCODE,
  jetbrains: Type.JETBRAINS,
  terminal: Type.RECONNECTING_PTY,
} as const;

export class ConnectionReports {
  readonly #reports: Pick<Reports, "add">;
  readonly #clock: Pick<Clock, "now">;
  #waiting = 0;

  constructor({ reports, clock }: { reports: Pick<Reports, "add">; clock: Pick<Clock, "now"> }) {
    this.#reports = reports;
    this.#clock = clock;
  }

  /** Reports the start of a connection from this address of the private network. */
  begin(kind: ReportedKind, ip: string): ReportEnd {
    if (this.#waiting >= MAX_WAITING) return () => {};
    const common = {
      id: uuidToBytes(uuid()),
      ip,
      type: typeof kind === "string" ? CONNECTION_TYPES[kind] : Type.TYPE_UNSPECIFIED,
      appName: typeof kind === "string" ? "" : `port:${kind.port}`,
    };
    this.#send({ ...common, action: Action.CONNECT });
    let isOver = false;
    return (reason, code = 0) => {
      if (isOver) return;
      isOver = true;
      this.#send({ ...common, action: Action.DISCONNECT, reason, statusCode: code });
    };
  }

  #send(report: object): void {
    this.#waiting += 1;
    const connection = { ...report, timestamp: toTimestamp(this.#clock.now()) };
    const call = this.#reports.add("a connection", (api, signal) => api.reportConnection({ connection }, signal));
    void call.then(() => {
      this.#waiting -= 1;
    });
  }
}
