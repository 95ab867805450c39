// Collects usage in memory and writes it once a minute, so that traffic does not cause writes (rules IN-1 to IN-4). Sources are apps and
// ports, terminals, statistics of agents and reports of clients. The memory for waiting observations is limited.
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { ANY_APP, BUCKET_MS } from "#db/reports/usage/block.ts";
import { type AppName, formatAppName, KEY_KINDS, type KeyKind } from "#db/reports/usage/keys.ts";
import {
  addLatencies,
  addMinutes,
  insertUsageKeys,
  type LatencyRow,
  listUsageKeys,
  listUsedApps,
  listUsedWorkspaces,
  type MinutesRow,
} from "#db/reports/usage/usage.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { BUILTIN_APPS } from "#schema/workspaces/usage-app.ts";

/** An observation of usage. */
export type Use = {
  readonly workspace_id: string;
  /** The active user; defaults to the owner of the workspace. */
  readonly user_id?: string | undefined;
  /** The agent that was used; required to identify an app that is not built in. */
  readonly agent_id?: string | undefined;
  /** Slug of the app; absent for ports and unnamed usage. */
  readonly app?: string | undefined;
  readonly at: number;
  /** The number of minutes that end at `at`; default 1. */
  readonly minutes?: number | undefined;
};

const MINUTE_MS = 60_000;
/** Maximum subjects since the last write. When there are more, all are written immediately. */
const MAX_WAITING = 20_000;
/** Maximum rows per commit, so that it does not block the event loop (docs/spec/design.md 4). */
const ROWS_PER_COMMIT = 250;
const MAX_KEYS = 100_000;

type Subject = Pick<Use, "workspace_id" | "user_id" | "agent_id" | "app"> & {
  /** Maps a bucket to the mask of its minutes. */
  readonly masks: Map<number, number>;
};
type Latency = { readonly workspace_id: string; readonly bucket: number; readonly ms: number };

export class UsageCollector {
  readonly #store: Store;
  readonly #onFull: () => void;
  readonly #keys = new Map<string, number>();
  #subjects = new Map<string, Subject>();
  #latencies: Latency[] = [];

  /** `onFull` is called when too many subjects are waiting. */
  constructor(store: Store, onFull: () => void) {
    this.#store = store;
    this.#onFull = onFull;
  }

  /** Records usage. Cheap enough to call for every chunk. */
  note(use: Use): void {
    const { workspace_id, user_id, agent_id, app, at, minutes = 1 } = use;
    const key = `${workspace_id} ${user_id ?? ""} ${agent_id ?? ""} ${app ?? ""}`;
    let subject = this.#subjects.get(key);
    if (!subject) {
      // Drops further usage, to limit the server's memory.
      if (this.#subjects.size >= 2 * MAX_WAITING) return;
      subject = { workspace_id, user_id, agent_id, app, masks: new Map() };
      this.#subjects.set(key, subject);
      if (this.#subjects.size === MAX_WAITING) this.#onFull();
    }
    const last = Math.floor(at / MINUTE_MS);
    for (let minute = last - minutes + 1; minute <= last; minute++) setMinute(subject.masks, minute);
  }

  /** Records the median latency of an agent's connections in milliseconds. Ignores values of 0 or less. */
  noteLatency(workspace_id: string, ms: number, at: number): void {
    if (ms <= 0 || this.#latencies.length >= 2 * MAX_WAITING) return;
    this.#latencies.push({ workspace_id, bucket: Math.floor(at / BUCKET_MS), ms: Math.min(30_000, Math.round(ms)) });
  }

  /** Writes everything recorded. Anything that fails is retried with the next write. */
  async flush(): Promise<void> {
    const [subjects, latencies] = [[...this.#subjects.values()], this.#latencies];
    if (subjects.length === 0 && latencies.length === 0) return;
    this.#subjects = new Map();
    this.#latencies = [];
    try {
      await this.#write(subjects, latencies);
    } catch (error) {
      log("usage").warn("cannot write usage, retrying: {error}", { error });
      this.#restore(subjects, latencies);
    }
  }

  #restore(subjects: readonly Subject[], latencies: readonly Latency[]): void {
    for (const { masks, ...subject } of subjects) {
      for (const [bucket, mask] of masks) {
        for (let bit = 0; bit < 30; bit++) {
          if (mask & (1 << bit)) this.note({ ...subject, at: bucket * BUCKET_MS + bit * MINUTE_MS });
        }
      }
    }
    for (const { workspace_id, bucket, ms } of latencies) this.noteLatency(workspace_id, ms, bucket * BUCKET_MS);
  }

  async #write(subjects: readonly Subject[], latencies: readonly Latency[]): Promise<void> {
    const workspaces = await this.#loadWorkspaces([...subjects, ...latencies].map(({ workspace_id }) => workspace_id));
    const names = await this.#loadAppNames(subjects);
    const work = subjects.flatMap((subject) => {
      const workspace = workspaces.get(subject.workspace_id);
      const user = subject.user_id ?? workspace?.owner_id;
      return workspace && user && user !== PREBUILDS_USER_ID
        ? [{ masks: subject.masks, user, template: workspace.template_id, app: names.get(toAppKey(subject)) }]
        : [];
    });
    const measured = latencies.flatMap(({ workspace_id, bucket, ms }) => {
      const workspace = workspaces.get(workspace_id);
      return workspace && workspace.owner_id !== PREBUILDS_USER_ID
        ? [{ user: workspace.owner_id, template: workspace.template_id, bucket, ms }]
        : [];
    });
    const keys = await this.#loadKeys([
      ...[...work, ...measured].flatMap(({ user, template }) => [
        { kind: KEY_KINDS.user, name: user },
        { kind: KEY_KINDS.template, name: template },
      ]),
      ...work.flatMap(({ app }) => (app === undefined ? [] : [{ kind: KEY_KINDS.app, name: app }])),
    ]);
    const rows = new Map<string, MinutesRow>();
    const add = (row: MinutesRow): void => {
      const key = `${row.bucket} ${row.user} ${row.template} ${row.app}`;
      const existing = rows.get(key);
      if (existing) existing.mask |= row.mask;
      else rows.set(key, row);
    };
    for (const one of work) {
      const [user, template] = [keys(KEY_KINDS.user, one.user), keys(KEY_KINDS.template, one.template)];
      for (const [bucket, mask] of one.masks) {
        add({ bucket, user, template, app: ANY_APP, mask });
        if (one.app !== undefined) add({ bucket, user, template, app: keys(KEY_KINDS.app, one.app), mask });
      }
    }
    const samples: LatencyRow[] = measured.map(({ user, template, bucket, ms }) => ({
      bucket,
      ms,
      count: 1,
      user: keys(KEY_KINDS.user, user),
      template: keys(KEY_KINDS.template, template),
    }));
    // Writes in slices. Minutes that are written twice after a failure count only once.
    for (const chunk of chunkRows([...rows.values()])) await this.#store.commit(addMinutes(chunk));
    for (const chunk of chunkRows(samples)) await this.#store.commit(addLatencies(chunk));
  }

  async #loadWorkspaces(ids: readonly string[]): Promise<Map<string, { owner_id: string; template_id: string }>> {
    const rows = await this.#store.scan(listUsedWorkspaces({ ids: JSON.stringify([...new Set(ids)]) }));
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Returns the names of the apps in use. An app that no longer exists has no name, and its use only counts as use of the workspace. */
  async #loadAppNames(subjects: readonly Subject[]): Promise<Map<string, string>> {
    const names = new Map<string, string>();
    for (const app of BUILTIN_APPS) names.set(` ${app.slug}`, formatAppName({ ...app, type: "builtin" }));
    const agents = new Set(subjects.flatMap(({ agent_id, app }) => (agent_id && app ? [agent_id] : [])));
    if (agents.size === 0) return names;
    for (const row of await this.#store.scan(listUsedApps({ agent_ids: JSON.stringify([...agents]) }))) {
      const name: AppName = { slug: row.slug, display_name: row.display_name, icon: row.icon, type: "app" };
      names.set(`${row.agent_id} ${row.slug}`, formatAppName(name));
    }
    return names;
  }

  async #loadKeys(names: readonly { kind: KeyKind; name: string }[]): Promise<(kind: KeyKind, name: string) => number> {
    if (this.#keys.size > MAX_KEYS) this.#keys.clear();
    const missing = new Map(names.map((one) => [`${one.kind} ${one.name}`, one]));
    for (const key of missing.keys()) if (this.#keys.has(key)) missing.delete(key);
    if (missing.size > 0) {
      const created = [...missing.values()];
      for (const chunk of chunkRows(created)) await this.#store.commit([insertUsageKeys(chunk)]);
      for (const kind of Object.values(KEY_KINDS)) {
        const wanted = created.filter((one) => one.kind === kind).map(({ name }) => name);
        if (wanted.length === 0) continue;
        for (const { key, name } of await this.#store.scan(listUsageKeys({ kind, names: JSON.stringify(wanted) }))) {
          this.#keys.set(`${kind} ${name}`, key);
        }
      }
    }
    return (kind, name) => {
      const key = this.#keys.get(`${kind} ${name}`);
      if (key === undefined) throw new Error(`${name} has no key`);
      return key;
    };
  }
}

const setMinute = (masks: Map<number, number>, minute: number): void => {
  const bucket = Math.floor(minute / 30);
  masks.set(bucket, (masks.get(bucket) ?? 0) | (1 << (minute - bucket * 30)));
};

/** Built-in apps have the same key for all agents. */
const toAppKey = ({ agent_id, app }: Subject): string =>
  app === undefined ? "" : BUILTIN_APPS.some(({ slug }) => slug === app) ? ` ${app}` : `${agent_id ?? ""} ${app}`;

function* chunkRows<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < rows.length; start += ROWS_PER_COMMIT) yield rows.slice(start, start + ROWS_PER_COMMIT);
}
