// Groups requests to apps and ports into visits for the connection log: many requests of one browser are one connection, which ends after a
// period of silence (rule CG-3).
import type { Timer } from "#base/clock.ts";
import type { ResolvedApp } from "#domain/applications/find.ts";
import type { ConnectedBy, End } from "#domain/connections/log.ts";
import type { ApiContext } from "../context.ts";

/** A visit ends after this much silence. */
const IDLE_TIMEOUT_MS = 15 * 60_000;
const SWEEP_INTERVAL_MS = 60_000;
/** Maximum number of open visits; beyond it, the least recently used one ends. */
const MAX_OPEN_VISITS = 10_000;

type Visit = { lastAt: number; readonly end: End };

export class AppVisits {
  readonly #ctx: Pick<ApiContext, "clock" | "connections">;
  /** Keyed by visitor and target, least recently used first. */
  readonly #openVisits = new Map<string, Visit>();
  #timer: Timer | undefined;

  constructor(ctx: Pick<ApiContext, "clock" | "connections">) {
    this.#ctx = ctx;
  }

  /** Records a response with its status. */
  recordResponse(app: ResolvedApp, by: ConnectedBy, status_code: number): void {
    const key = toKey(app, by);
    if (this.recordTraffic(app, by)) return;
    const { agent_id, isPort, slug, port } = app;
    const end = this.#ctx.connections.begin({
      ...by,
      agent_id,
      type: isPort ? "port_forwarding" : "workspace_app",
      target: slug ?? String(port),
      status_code,
    });
    this.#openVisits.set(key, { lastAt: this.#ctx.clock.now(), end });
    const [oldest] = this.#openVisits;
    if (this.#openVisits.size > MAX_OPEN_VISITS && oldest) this.#end(...oldest);
    this.#timer ??= this.#ctx.clock.after(SWEEP_INTERVAL_MS, () => this.#sweep());
  }

  /** Records traffic; returns false when no visit is open. Cheap enough to call for every chunk. */
  recordTraffic(app: ResolvedApp, by: ConnectedBy): boolean {
    const key = toKey(app, by);
    const visit = this.#openVisits.get(key);
    if (!visit) return false;
    visit.lastAt = this.#ctx.clock.now();
    this.#openVisits.delete(key);
    this.#openVisits.set(key, visit);
    return true;
  }

  #sweep(): void {
    this.#timer = undefined;
    const idleSince = this.#ctx.clock.now() - IDLE_TIMEOUT_MS;
    for (const [key, visit] of this.#openVisits) {
      if (visit.lastAt > idleSince) break;
      this.#end(key, visit);
    }
    if (this.#openVisits.size > 0) this.#timer = this.#ctx.clock.after(SWEEP_INTERVAL_MS, () => this.#sweep());
  }

  #end(key: string, visit: Visit): void {
    this.#openVisits.delete(key);
    visit.end("nothing was asked for any more", { at: visit.lastAt });
  }
}

const toKey = ({ agent_id, slug, port }: ResolvedApp, { user_id, ip, user_agent }: ConnectedBy): string =>
  JSON.stringify([agent_id, slug ?? port, user_id, ip, user_id === null ? "" : user_agent]);
