// Records the IDs of changed workspaces in order, for connected clients and for clients that reconnect after a short time. The log is
// bounded; a client that was disconnected for longer starts with a snapshot (rules WS-1, WS-4).
import { INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import type { Timer } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { listDependentWorkspaces, listWorkspacesSilentSince } from "#db/workspaces/summaries.ts";
import type { ApiContext } from "../context.ts";

/** Maximum workspaces whose last change is recorded. */
const MAX_CHANGES = 20_000;
/** Interval of the check for agents that have stopped sending messages. No event reports that. */
const SILENCE_CHECK_INTERVAL_MS = 5_000;

export interface ChangeListener {
  onChanged(id: string): void;
  /** Called when the set of workspaces this user can see may have changed. */
  onAccessChanged(user_id: string): void;
  /** Called when changes may have been missed, so everything shown may be outdated. */
  onMissed(): void;
  /** Called when a template or one of its versions has changed or was deleted. */
  onTemplateChanged(template: TemplateRow): void;
}

const instances = new WeakMap<ApiContext, ChangeLog>();

/** Returns the server's shared instance, because cursors issued by one request are used by another. */
export const getChangeLog = (ctx: ApiContext): ChangeLog => {
  const shared = instances.get(ctx) ?? new ChangeLog(ctx);
  instances.set(ctx, shared);
  return shared;
};

export class ChangeLog {
  readonly #ctx: ApiContext;
  /** Workspace ID to change number, in order of the last change. */
  readonly #changes = new Map<string, number>();
  readonly #listeners = new Set<ChangeListener>();
  readonly #epoch = uuid();
  #number = 0;
  /** All changes after this number are known. */
  #floor = 0;
  #silenceTimer: Timer | undefined;
  #silenceCheckedUntil = 0;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
    ctx.topics.subscribeAll("workspace", (id) => this.#record(id));
    ctx.topics.subscribeAll("workspace_changed", (id) => this.#record(id));
    ctx.topics.subscribeAll("access_changed", (id) => {
      this.#record(id);
      for (const listener of [...this.#listeners]) listener.onAccessChanged(id);
    });
    ctx.topics.subscribeAll("shown_changed", (id) => {
      void this.#recordDependents(id);
      void this.#announceTemplate(id);
    });
    ctx.topics.subscribeAll("missed", () => this.#reset());
  }

  /** Calls the listener on every change until the returned function is called. */
  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    if (!this.#silenceTimer) {
      this.#silenceCheckedUntil = this.#ctx.clock.now() - INACTIVITY_TIMEOUT_MS;
      this.#silenceTimer = this.#ctx.clock.every(SILENCE_CHECK_INTERVAL_MS, () => void this.#recordSilent());
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#silenceTimer?.cancel();
      this.#silenceTimer = undefined;
    };
  }

  /** Returns the cursor after the last change, as sent to clients. */
  get cursor(): string {
    return `${this.#epoch}.${this.#number}`;
  }

  /** Returns the workspaces changed after this cursor; undefined when they are no longer known. */
  listAfter(cursor: string): string[] | undefined {
    const [epoch, text] = cursor.split(".");
    const changeNumber = Number(text);
    if (epoch !== this.#epoch || !(changeNumber >= this.#floor && changeNumber <= this.#number)) return undefined;
    const changed: string[] = [];
    for (const [id, at] of this.#changes) if (at > changeNumber) changed.push(id);
    return changed;
  }

  #record(id: string): void {
    this.#number += 1;
    this.#changes.delete(id);
    this.#changes.set(id, this.#number);
    if (this.#changes.size > MAX_CHANGES) {
      const [oldest] = this.#changes;
      if (oldest) {
        this.#changes.delete(oldest[0]);
        this.#floor = oldest[1];
      }
    }
    for (const listener of [...this.#listeners]) listener.onChanged(id);
  }

  /** Invalidates all earlier cursors. */
  #reset(): void {
    this.#number += 1;
    this.#floor = this.#number;
    this.#changes.clear();
    for (const listener of [...this.#listeners]) listener.onMissed();
  }

  async #recordDependents(id: string): Promise<void> {
    try {
      for (const workspaceId of await this.#ctx.store.scan(listDependentWorkspaces(id))) this.#record(workspaceId);
    } catch (error) {
      log("watch").warn("cannot read the workspaces that show {id}: {error}", { id, error });
    }
  }

  /** Looks the template up once for all listeners. The ID may also be of a user or an organization; then no template is found. */
  async #announceTemplate(id: string): Promise<void> {
    if (this.#listeners.size === 0) return;
    const { store } = this.#ctx;
    try {
      const version = await store.get(findTemplateVersion({ id }));
      const template = await store.get(findTemplateEvenDeleted({ id: version?.template_id ?? id }));
      if (template) for (const listener of [...this.#listeners]) listener.onTemplateChanged(template);
    } catch (error) {
      log("watch").warn("cannot read the template {id}: {error}", { id, error });
    }
  }

  async #recordSilent(): Promise<void> {
    const [from, to] = [this.#silenceCheckedUntil, this.#ctx.clock.now() - INACTIVITY_TIMEOUT_MS];
    this.#silenceCheckedUntil = to;
    try {
      for (const workspaceId of await this.#ctx.store.scan(listWorkspacesSilentSince(from, to)))
        this.#record(workspaceId);
    } catch (error) {
      log("watch").warn("cannot search for silent agents: {error}", { error });
    }
  }
}
