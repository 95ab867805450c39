// One follower of all workspaces a person may see: a snapshot or what was missed, then each change once, with the access of that
// moment, since every row is read through it. Only ids wait, each once (rules WS-1 to WS-6).
import { log } from "#base/log.ts";
import type { TemplateRow } from "#db/templates/templates.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { readMemberships } from "#db/users/members.ts";
import { listSeenWorkspaces, listWorkspaceSummaries, type SummaryRow } from "#db/workspaces/summaries.ts";
import { mayReadTemplate } from "#domain/access.ts";
import { toScope } from "#domain/workspaces/search.ts";
import { presentSummary } from "#domain/workspaces/summary.ts";
import type { WorkspacesEvent } from "#schema/workspaces/workspace-watch.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { type ChangedIds, type ChangeListener, getChangedIds } from "./changed-ids.ts";

/** Rows in one message. */
const ROWS = 500;
/** And in the first of a snapshot: a page of them, so that it is there immediately. */
const FIRST_ROWS = 100;

const ACCESS = JSON.stringify({ type: "access" } satisfies WorkspacesEvent);

/** In place of the hash of a row that the reader has in a form that is not known here. */
const UNSEEN = -1;

/** Where messages go. */
export interface Outlet {
  /** Sends one line of JSON; resolves when the reader can take more, to false when it no longer exists. */
  send(json: string): Promise<boolean>;
  /** It cannot be read; the client returns. */
  failed(): void;
}

export class WorkspacesFollower implements ChangeListener {
  readonly #ctx: ApiContext;
  readonly #changes: ChangedIds;
  readonly #outlet: Outlet;
  #caller: UserCaller;
  /** What the reader has: id -> hash of the row, so that nothing is told twice. */
  #known = new Map<string, number | bigint>();
  readonly #waiting = new Set<string>();
  /** What someone who returns has missed, until it is told. */
  #missed: ReadonlySet<string> | undefined;
  /** Templates to tell of, each once. */
  readonly #templates = new Set<string>();
  #isAll = false;
  #rolesChanged = false;
  #working = false;
  #gone = false;
  #leave: () => void = () => {};

  constructor(ctx: ApiContext, changes: ChangedIds, caller: UserCaller, outlet: Outlet) {
    this.#ctx = ctx;
    this.#changes = changes;
    this.#caller = caller;
    this.#outlet = outlet;
  }

  /** Begins after this place of an earlier stream, or with a snapshot. */
  begin(after: string | undefined): void {
    this.#leave = this.#changes.listen(this);
    const missed = after === undefined ? undefined : this.#changes.after(after);
    this.#missed = missed && new Set(missed);
    // Since that place, or nobody knows: it may be of another node, or too long ago.
    this.#rolesChanged = after !== undefined && (!this.#missed || this.#missed.has(this.#caller.user_id));
    this.#isAll = true;
    this.#wake();
  }

  end(): void {
    this.#gone = true;
    this.#leave();
  }

  changed(id: string): void {
    this.#waiting.add(id);
    this.#wake();
  }

  accessChanged(user_id: string): void {
    if (user_id === this.#caller.user_id) this.missed();
  }

  missed(): void {
    this.#rolesChanged = true;
    this.#missed = undefined;
    this.#isAll = true;
    this.#wake();
  }

  templateChanged(template: TemplateRow): void {
    if (!mayReadTemplate(this.#caller, template)) return;
    this.#templates.add(template.id);
    this.#wake();
  }

  /** Something waits to be told. */
  get #isDue(): boolean {
    return this.#isAll || this.#waiting.size > 0 || this.#templates.size > 0;
  }

  #wake(): void {
    if (this.#working || this.#gone) return;
    this.#working = true;
    void this.#work()
      .catch((error) => {
        log("watch").warn("the workspaces of {user} cannot be read: {error}", { user: this.#caller.user_id, error });
        if (!this.#gone) this.#outlet.failed();
      })
      .finally(() => {
        this.#working = false;
        // A change may have come between the last look and this.
        if (this.#isDue) this.#wake();
      });
  }

  async #work(): Promise<void> {
    while (!this.#gone && this.#isDue) {
      // What the rest of this turn commits is read together.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const place = this.#changes.place;
      if (this.#rolesChanged) {
        await this.#readRoles();
        if (!(await this.#send(ACCESS))) return;
      }
      if (this.#isAll) await this.#sendAll(place);
      else if (this.#waiting.size > 0) await this.#sendChanges(place);
      const changed = [...this.#templates];
      this.#templates.clear();
      if (changed.length > 0)
        await this.#send(JSON.stringify({ type: "templates", changed } satisfies WorkspacesEvent));
    }
  }

  async #sendAll(id: string): Promise<void> {
    this.#isAll = false;
    this.#waiting.clear();
    this.#known = new Map();
    if (this.#missed && (await this.#sendMissed(this.#missed, id))) return;
    const scope = toScope(this.#caller);
    const ids = await this.#ctx.store.scan(listSeenWorkspaces(scope, this.#caller.user_id));
    const read = (at: number): Promise<SummaryRow[]> => {
      const page = ids.slice(at, at + (at === 0 ? FIRST_ROWS : ROWS));
      return page.length === 0 ? Promise.resolve([]) : this.#ctx.store.scan(listWorkspaceSummaries(scope, page));
    };
    // Read page by page: the first rows do not wait for the last, and nobody else for all of them. While one is on its way the next is
    // read. What changes in the meantime is told after.
    let next = read(0);
    for (let at = 0, end = 0; at === 0 || at < ids.length; at = end) {
      end = at + (at === 0 ? FIRST_ROWS : ROWS);
      const rows = await next;
      next = read(end);
      // Anyone who waits for it hears of its failure.
      next.catch(() => undefined);
      const shown = rows.map((row) => this.#json(row).json);
      const more = end < ids.length;
      if (!(await this.#send(`{"type":"snapshot","workspaces":[${shown.join(",")}],"more":${more},"id":"${id}"}`)))
        return;
    }
  }

  /**
   * What was missed, as changes. False when it takes a snapshot: one of them cannot be seen, and whether it was seen before is not known
   * here; or what the person may see was changed.
   */
  async #sendMissed(missed: ReadonlySet<string>, id: string): Promise<boolean> {
    this.#missed = undefined;
    const rows = await this.#ctx.store.scan(listWorkspaceSummaries(toScope(this.#caller)));
    const seen = rows.filter((row) => missed.has(row.id as string));
    if (seen.length < missed.size) return false;
    // A row may be newer here than what the reader has: its change is announced after this, and told then.
    for (const row of rows) this.#known.set(row.id as string, UNSEEN);
    const changed = seen.map((row) => this.#json(row).json);
    await this.#send(`{"type":"changes","changed":[${changed.join(",")}],"removed":[],"id":"${id}"}`);
    return true;
  }

  async #sendChanges(id: string): Promise<void> {
    const ids = [...this.#waiting];
    this.#waiting.clear();
    for (let at = 0; at < ids.length; at += ROWS) {
      const some = ids.slice(at, at + ROWS);
      const rows = await this.#ctx.store.scan(listWorkspaceSummaries(toScope(this.#caller), some));
      const seen = new Set(rows.map((row) => row.id as string));
      const changed = rows.map((row) => this.#json(row)).flatMap(({ json, isNew }) => (isNew ? json : []));
      const removed = some.filter((one) => !seen.has(one) && this.#known.has(one));
      for (const one of removed) this.#known.delete(one);
      if (changed.length === 0 && removed.length === 0) continue;
      // Only the last message of a round says that all before its place has been told.
      const place = at + ROWS < ids.length ? "" : id;
      const json = `{"type":"changes","changed":[${changed.join(",")}],"removed":${JSON.stringify(removed)},"id":"${place}"}`;
      if (!(await this.#send(json))) return;
    }
  }

  #json(row: SummaryRow): { json: string; isNew: boolean } {
    const json = JSON.stringify(presentSummary(row, this.#caller.user_id, this.#ctx.clock.now()));
    const hash = Bun.hash(json);
    const isNew = this.#known.get(row.id as string) !== hash;
    this.#known.set(row.id as string, hash);
    return { json, isNew };
  }

  async #send(json: string): Promise<boolean> {
    if (this.#gone) return false;
    const goesOn = await this.#outlet.send(json);
    if (!goesOn) this.end();
    return goesOn;
  }

  /** The roles and memberships of this moment. A key that is void ends the stream elsewhere (revocation.ts). */
  async #readRoles(): Promise<void> {
    this.#rolesChanged = false;
    const { store } = this.#ctx;
    const { key_id, user_id } = this.#caller;
    const [key, memberships] = await Promise.all([
      store.get(findKeyWithUser({ id: key_id })),
      readMemberships(store, user_id),
    ]);
    this.#caller = { ...this.#caller, roles: key?.roles ?? [], ...memberships };
  }
}

/**
 * What such a stream says first, for someone who continues with the stream after it; undefined where they see more than fits into one
 * message.
 */
export const firstMessage = async (ctx: ApiContext, caller: UserCaller): Promise<string | undefined> => {
  // What changes from here on is told after it.
  const id = getChangedIds(ctx).place;
  const scope = toScope(caller);
  const ids = await ctx.store.scan(listSeenWorkspaces(scope, caller.user_id));
  if (ids.length > FIRST_ROWS) return undefined;
  const rows = ids.length === 0 ? [] : await ctx.store.scan(listWorkspaceSummaries(scope, ids));
  const workspaces = rows.map((row) => presentSummary(row, caller.user_id, ctx.clock.now()));
  return JSON.stringify({ type: "snapshot", workspaces, more: false, id } satisfies WorkspacesEvent);
};
