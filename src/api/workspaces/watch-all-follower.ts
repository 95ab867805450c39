// Follows all workspaces a user can see: a snapshot or the missed changes, then each change once. Every row is read with the user's current
// access. Only IDs are queued, each once (rules WS-1 to WS-6).

import { log } from "#base/log.ts";
import { nextTurn } from "#base/retry.ts";
import type { TemplateRow } from "#db/templates/templates.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { readMemberships } from "#db/users/members.ts";
import { listSeenWorkspaces, listWorkspaceSummaries, type SummaryRow } from "#db/workspaces/summaries.ts";
import { canReadTemplate } from "#domain/access.ts";
import { toScope } from "#domain/workspaces/search.ts";
import { presentSummary } from "#domain/workspaces/summary.ts";
import { hasScope } from "#schema/users/scopes.ts";
import type { WorkspacesEvent } from "#schema/workspaces/workspace-watch.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { type ChangeListener, type ChangeLog, getChangeLog } from "./change-log.ts";

/** Maximum rows per message. */
const MAX_ROWS = 500;
/** Rows in the first message of a snapshot: one page, so that it arrives immediately. */
const MAX_FIRST_ROWS = 100;

const ACCESS_EVENT = JSON.stringify({ type: "access" } satisfies WorkspacesEvent);

/** Hash of a row that the client has in an unknown version. */
const UNSEEN = -1;

export interface Outlet {
  /** Sends one line of JSON; resolves with true when the client can take more, and with false when it has disconnected. */
  send(json: string): Promise<boolean>;
  /** Called when the data cannot be read; the client reconnects. */
  fail(): void;
}

export class WorkspacesFollower implements ChangeListener {
  readonly #ctx: ApiContext;
  readonly #changes: ChangeLog;
  readonly #outlet: Outlet;
  #caller: UserCaller;
  /** Rows the client has, as ID to hash, so that nothing is sent twice. */
  #sentHashes = new Map<string, number | bigint>();
  readonly #changedIds = new Set<string>();
  /** The changes a reconnecting client has missed, until they are sent. */
  #missed: ReadonlySet<string> | undefined;
  /** Templates with pending notifications, each once. */
  readonly #templates = new Set<string>();
  #needsAll = false;
  #rolesChanged = false;
  #isWorking = false;
  #isClosed = false;
  #stopListening: () => void = () => {};

  constructor(ctx: ApiContext, changes: ChangeLog, caller: UserCaller, outlet: Outlet) {
    this.#ctx = ctx;
    this.#changes = changes;
    this.#caller = caller;
    this.#outlet = outlet;
  }

  /** Starts after a cursor of an earlier stream, or with a snapshot. */
  begin(after: string | undefined): void {
    this.#stopListening = this.#changes.listen(this);
    const missed = after === undefined ? undefined : this.#changes.listAfter(after);
    this.#missed = missed && new Set(missed);
    // An unknown cursor comes from another node or is too old. The roles may then have changed, too.
    this.#rolesChanged = after !== undefined && (!this.#missed || this.#missed.has(this.#caller.user_id));
    this.#needsAll = true;
    this.#wake();
  }

  end(): void {
    this.#isClosed = true;
    this.#stopListening();
  }

  onChanged(id: string): void {
    this.#changedIds.add(id);
    this.#wake();
  }

  onAccessChanged(user_id: string): void {
    if (user_id === this.#caller.user_id) this.onMissed();
  }

  onMissed(): void {
    this.#rolesChanged = true;
    this.#missed = undefined;
    this.#needsAll = true;
    this.#wake();
  }

  onTemplateChanged(template: TemplateRow): void {
    if (!hasScope(this.#caller.scopes, "template:read") || !canReadTemplate(this.#caller, template)) return;
    this.#templates.add(template.id);
    this.#wake();
  }

  /** Returns whether something is waiting to be sent. */
  get #hasPending(): boolean {
    return this.#needsAll || this.#changedIds.size > 0 || this.#templates.size > 0;
  }

  #wake(): void {
    if (this.#isWorking || this.#isClosed) return;
    this.#isWorking = true;
    void this.#work()
      .catch((error) => {
        log("watch").warn("the workspaces of {user} cannot be read: {error}", { user: this.#caller.user_id, error });
        if (!this.#isClosed) this.#outlet.fail();
      })
      .finally(() => {
        this.#isWorking = false;
        // A change may have arrived since the last check.
        if (this.#hasPending) this.#wake();
      });
  }

  async #work(): Promise<void> {
    while (!this.#isClosed && this.#hasPending) {
      // Everything committed in the rest of this turn is read together.
      await nextTurn();
      const cursor = this.#changes.cursor;
      if (this.#rolesChanged) {
        await this.#readRoles();
        if (!(await this.#send(ACCESS_EVENT))) return;
      }
      if (this.#needsAll) await this.#sendAll(cursor);
      else if (this.#changedIds.size > 0) await this.#sendChanges(cursor);
      const changed = [...this.#templates];
      this.#templates.clear();
      if (changed.length > 0)
        await this.#send(JSON.stringify({ type: "templates", changed } satisfies WorkspacesEvent));
    }
  }

  async #sendAll(cursor: string): Promise<void> {
    this.#needsAll = false;
    this.#changedIds.clear();
    this.#sentHashes = new Map();
    if (this.#missed && (await this.#sendMissed(this.#missed, cursor))) return;
    const scope = toScope(this.#caller);
    const ids = await this.#ctx.store.scan(listSeenWorkspaces(scope, this.#caller.user_id));
    const read = (start: number): Promise<SummaryRow[]> => {
      const page = ids.slice(start, start + (start === 0 ? MAX_FIRST_ROWS : MAX_ROWS));
      return page.length === 0 ? Promise.resolve([]) : this.#ctx.store.scan(listWorkspaceSummaries(scope, page));
    };
    // Reads page by page: the first rows are sent before the last are read, and other requests run in between. The next page is read while
    // one is being sent. Changes in the meantime are sent afterwards.
    let next = read(0);
    for (let start = 0, end = 0; start === 0 || start < ids.length; start = end) {
      end = start + (start === 0 ? MAX_FIRST_ROWS : MAX_ROWS);
      const rows = await next;
      next = read(end);
      // A failure is handled by the next round, which awaits this promise.
      next.catch(() => undefined);
      const rowJsons = rows.map((row) => this.#toJson(row).json);
      const hasMore = end < ids.length;
      const json = `{"type":"snapshot","workspaces":[${rowJsons.join(",")}],"more":${hasMore},"id":"${cursor}"}`;
      if (!(await this.#send(json))) return;
    }
  }

  /**
   * Sends the missed changes. Returns false when a snapshot is needed instead: a changed workspace is not visible and may have been before,
   * or the user's access has changed.
   */
  async #sendMissed(missed: ReadonlySet<string>, cursor: string): Promise<boolean> {
    this.#missed = undefined;
    const rows = await this.#ctx.store.scan(listWorkspaceSummaries(toScope(this.#caller)));
    const visibleRows = rows.filter((row) => missed.has(row.id as string));
    if (visibleRows.length < missed.size) return false;
    // A row read here may be newer than the client's version; that change is announced and sent later.
    for (const row of rows) this.#sentHashes.set(row.id as string, UNSEEN);
    const rowJsons = visibleRows.map((row) => this.#toJson(row).json);
    await this.#send(`{"type":"changes","changed":[${rowJsons.join(",")}],"removed":[],"id":"${cursor}"}`);
    return true;
  }

  async #sendChanges(endCursor: string): Promise<void> {
    const ids = [...this.#changedIds];
    this.#changedIds.clear();
    for (let start = 0; start < ids.length; start += MAX_ROWS) {
      const batch = ids.slice(start, start + MAX_ROWS);
      const rows = await this.#ctx.store.scan(listWorkspaceSummaries(toScope(this.#caller), batch));
      const visibleIds = new Set(rows.map((row) => row.id as string));
      const changed = rows.map((row) => this.#toJson(row)).flatMap(({ json, isNew }) => (isNew ? json : []));
      const removed = batch.filter((workspaceId) => !visibleIds.has(workspaceId) && this.#sentHashes.has(workspaceId));
      for (const workspaceId of removed) this.#sentHashes.delete(workspaceId);
      if (changed.length === 0 && removed.length === 0) continue;
      // Only the last message of a round carries the cursor, because only then has everything before it been sent.
      const cursor = start + MAX_ROWS < ids.length ? "" : endCursor;
      const json = `{"type":"changes","changed":[${changed.join(",")}],"removed":${JSON.stringify(removed)},"id":"${cursor}"}`;
      if (!(await this.#send(json))) return;
    }
  }

  #toJson(row: SummaryRow): { json: string; isNew: boolean } {
    const json = JSON.stringify(presentSummary(row, this.#caller.user_id, this.#ctx.clock.now()));
    const hash = Bun.hash(json);
    const isNew = this.#sentHashes.get(row.id as string) !== hash;
    this.#sentHashes.set(row.id as string, hash);
    return { json, isNew };
  }

  async #send(json: string): Promise<boolean> {
    if (this.#isClosed) return false;
    const canContinue = await this.#outlet.send(json);
    if (!canContinue) this.end();
    return canContinue;
  }

  /** Reads the user's current roles and memberships. An invalid key ends the stream elsewhere (revocation.ts). */
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
 * Returns the stream's first message for a client that continues with the stream afterwards; undefined when the rows don't fit into one
 * message.
 */
export const loadFirstMessage = async (ctx: ApiContext, caller: UserCaller): Promise<string | undefined> => {
  // Changes after this cursor are sent by the stream.
  const id = getChangeLog(ctx).cursor;
  const scope = toScope(caller);
  const ids = await ctx.store.scan(listSeenWorkspaces(scope, caller.user_id));
  if (ids.length > MAX_FIRST_ROWS) return undefined;
  const rows = ids.length === 0 ? [] : await ctx.store.scan(listWorkspaceSummaries(scope, ids));
  const workspaces = rows.map((row) => presentSummary(row, caller.user_id, ctx.clock.now()));
  return JSON.stringify({ type: "snapshot", workspaces, more: false, id } satisfies WorkspacesEvent);
};
