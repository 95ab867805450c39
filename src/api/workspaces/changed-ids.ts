// Which workspaces have changed, in order, as ids alone: what everyone who follows all of theirs is told by, and what someone who
// was away for a moment has missed. Bounded: who was away for longer begins with a snapshot (rules WS-1, WS-4).
import { INACTIVE_MS } from "#actors/agent/status.ts";
import type { Timer } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { listWorkspacesShowing, listWorkspacesSilentSince } from "#db/workspaces/summaries.ts";
import type { ApiContext } from "../context.ts";

/** Workspaces whose last change is remembered. */
const LIMIT = 20_000;
/** How often agents are looked for that have gone silent: nobody announces it. */
const SILENCE_EVERY_MS = 5_000;

export interface ChangeListener {
  changed(id: string): void;
  /** What the person with this id may see may be another set now. */
  accessChanged(user_id: string): void;
  /** Changes may have been missed: whatever is shown may be another. */
  missed(): void;
  /** It, or one of its versions, is another now; it may have been deleted. */
  templateChanged(template: TemplateRow): void;
}

const all = new WeakMap<ApiContext, ChangedIds>();

/** Those of this server: places are told by one and taken by another. */
export const getChangedIds = (ctx: ApiContext): ChangedIds => {
  const known = all.get(ctx) ?? new ChangedIds(ctx);
  all.set(ctx, known);
  return known;
};

export class ChangedIds {
  readonly #ctx: ApiContext;
  /** In the order of the last change: id -> number of the change. */
  readonly #changes = new Map<string, number>();
  readonly #listeners = new Set<ChangeListener>();
  readonly #epoch = uuid();
  #number = 0;
  /** Everything after this number is known. */
  #floor = 0;
  #silenceTimer: Timer | undefined;
  #silentUntil = 0;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
    ctx.topics.subscribeAll("workspace", (id) => this.#note(id));
    ctx.topics.subscribeAll("workspace_changed", (id) => this.#note(id));
    ctx.topics.subscribeAll("access_changed", (id) => {
      this.#note(id);
      for (const one of [...this.#listeners]) one.accessChanged(id);
    });
    ctx.topics.subscribeAll("shown_changed", (id) => {
      void this.#noteShowing(id);
      void this.#noteTemplate(id);
    });
    ctx.topics.subscribeAll("missed", () => this.#forget());
  }

  /** Tells of every change from now on until the returned function is called. */
  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    if (!this.#silenceTimer) {
      this.#silentUntil = this.#ctx.clock.now() - INACTIVE_MS;
      this.#silenceTimer = this.#ctx.clock.every(SILENCE_EVERY_MS, () => void this.#noteSilent());
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#silenceTimer?.cancel();
      this.#silenceTimer = undefined;
    };
  }

  /** The place after the last change, as clients get it. */
  get place(): string {
    return `${this.#epoch}.${this.#number}`;
  }

  /** What has changed after this place; undefined when that is not known any more. */
  after(place: string): string[] | undefined {
    const [epoch, text] = place.split(".");
    const number = Number(text);
    if (epoch !== this.#epoch || !(number >= this.#floor && number <= this.#number)) return undefined;
    const found: string[] = [];
    for (const [id, at] of this.#changes) if (at > number) found.push(id);
    return found;
  }

  #note(id: string): void {
    this.#number += 1;
    this.#changes.delete(id);
    this.#changes.set(id, this.#number);
    if (this.#changes.size > LIMIT) {
      const [oldest] = this.#changes;
      if (oldest) {
        this.#changes.delete(oldest[0]);
        this.#floor = oldest[1];
      }
    }
    for (const one of [...this.#listeners]) one.changed(id);
  }

  /** Nobody can continue from an earlier place. */
  #forget(): void {
    this.#number += 1;
    this.#floor = this.#number;
    this.#changes.clear();
    for (const one of [...this.#listeners]) one.missed();
  }

  async #noteShowing(id: string): Promise<void> {
    try {
      for (const one of await this.#ctx.store.scan(listWorkspacesShowing(id))) this.#note(one);
    } catch (error) {
      log("watch").warn("the workspaces that show {id} cannot be read: {error}", { id, error });
    }
  }

  /** Looked up once for all listeners; most of what shows elsewhere is no template. */
  async #noteTemplate(id: string): Promise<void> {
    if (this.#listeners.size === 0) return;
    const { store } = this.#ctx;
    try {
      const version = await store.get(findTemplateVersion({ id }));
      const template = await store.get(findTemplateEvenDeleted({ id: version?.template_id ?? id }));
      if (template) for (const one of [...this.#listeners]) one.templateChanged(template);
    } catch (error) {
      log("watch").warn("the template {id} cannot be read: {error}", { id, error });
    }
  }

  async #noteSilent(): Promise<void> {
    const [from, to] = [this.#silentUntil, this.#ctx.clock.now() - INACTIVE_MS];
    this.#silentUntil = to;
    try {
      for (const one of await this.#ctx.store.scan(listWorkspacesSilentSince(from, to))) this.#note(one);
    } catch (error) {
      log("watch").warn("silent agents cannot be looked for: {error}", { error });
    }
  }
}
