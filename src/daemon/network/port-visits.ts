// Reports the ports that a peer of the private network uses to the connection log. A browser's many streams count as one connection, which
// ends when none has been open for a while.
import type { Clock, Timer } from "#base/clock.ts";
import type { ConnectionReports, ReportEnd } from "../connection/connection-reports.ts";

const IDLE_TIMEOUT_MS = 60_000;
/** Maximum number of ports tracked at a time; others are not reported. */
const MAX_PORTS = 1_000;

type Visit = { streams: number; idleTimer: Timer | undefined; readonly ended: ReportEnd };

export class PortVisits {
  readonly #clock: Clock;
  readonly #reports: Pick<ConnectionReports, "begin">;
  readonly #visits = new Map<string, Visit>();

  constructor({ clock, reports }: { clock: Clock; reports: Pick<ConnectionReports, "begin"> }) {
    this.#clock = clock;
    this.#reports = reports;
  }

  /** Records a new stream. Returns a function to call when the stream has ended. */
  begin(ip: string, port: number): () => void {
    const key = `${ip} ${port}`;
    const visit = this.#visits.get(key) ?? this.#createVisit(key, ip, port);
    if (!visit) return () => {};
    visit.streams += 1;
    visit.idleTimer?.cancel();
    return () => {
      visit.streams -= 1;
      if (visit.streams > 0) return;
      visit.idleTimer = this.#clock.after(IDLE_TIMEOUT_MS, () => {
        this.#visits.delete(key);
        visit.ended("the port has been idle");
      });
    };
  }

  /** Ends all visits. */
  close(): void {
    for (const visit of this.#visits.values()) {
      visit.idleTimer?.cancel();
      visit.ended("the agent has stopped");
    }
    this.#visits.clear();
  }

  #createVisit(key: string, ip: string, port: number): Visit | undefined {
    if (this.#visits.size >= MAX_PORTS) return undefined;
    const visit = { streams: 0, idleTimer: undefined, ended: this.#reports.begin({ port }, ip) };
    this.#visits.set(key, visit);
    return visit;
  }
}
