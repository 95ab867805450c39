// The pull requests of chats: learns from the workspace what a chat has pushed, asks the git host how its pull request stands, and keeps
// that (facts/chats 2.11, 4.4, 6, rules PR-1 to PR-6). Works outside of every mailbox, a few at a time; told by ends of turns and by the
// scheduler. The only writer of `chat_diffs`. Without external-auth providers it does nothing.

import PQueue from "p-queue";
import { AppError, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Outbound } from "#base/outbound.ts";
import { partOf } from "#base/parts.ts";
import type { Topics } from "#base/topics.ts";
import { askPullLater, type ChatDiffRow, type FoundChatDiff, findChatDiff, putChatDiff } from "#db/chats/diffs.ts";
import type { GitReferences } from "#schema/agents/git-message.ts";
import type { Provider } from "#src/git/provider.ts";
import type { Pulls } from "#src/git/pull.ts";
import { findPullHost } from "#src/git/pulls.ts";
import { PullError, PullHttp } from "#src/git/pulls-http.ts";
import { parseRemote } from "#src/git/remote.ts";
import type { Chore } from "../../runtime/chore.ts";
import type { Events } from "../../runtime/events.ts";
import { type ReachDeps, WorkspaceAgent } from "../turn/tool-agent.ts";
import { FRESH_MS, nextLook } from "./pull-request-pace.ts";

/** Who is linked where; implemented where the accounts are. */
export type GitAccounts = {
  readonly providers: ReadonlyMap<string, Provider>;
  providerFor(url: string): Provider | undefined;
  /** Undefined: the user has linked no account that works. */
  live(user_id: string, provider: Provider): Promise<{ readonly access_token: string } | undefined>;
};

type Deps = ReachDeps & {
  readonly topics: Topics<Events>;
  readonly accounts: GitAccounts;
  readonly outbound: Outbound;
};

const AT_ONCE = 6;
/** Chats that wait; beyond that one is looked at when it moves again. */
const MAX_WAITING = 1_000;
/** A look that a crash has cut off is made again after this. */
const LEASE_MS = 5 * 60_000;
const MAX_IDLE = 10_000;

type Known = FoundChatDiff & { readonly diff: ChatDiffRow };

/** Of a chat that no longer exists there is nothing left but its timer. */
const partIn = (found: FoundChatDiff | undefined): number | undefined => found && partOf(found.chat.owner_id);

export class Diffs implements Chore {
  readonly #deps: Deps;
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #waiting = new Set<string>();
  /** Provider and user -> until when the host wants to be left alone. */
  readonly #resting = new Map<string, number>();
  readonly #stopping = new AbortController();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** A turn has ended: what it has pushed is looked for in the workspace. */
  turnEnded({ id, workspace_id }: { readonly id: string; readonly workspace_id: string | null }): void {
    if (workspace_id !== null && this.#deps.accounts.providers.size > 0) this.#soon(id, () => this.#learn(id));
  }

  /** The timer of the chat has come: the host is asked, outside of the scheduler's turn. */
  async due(id: string): Promise<void> {
    const { store, clock } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    await store.commit([askPullLater(id, clock.now() + LEASE_MS)], undefined, partIn(found));
    this.#soon(id, () => this.#refresh(id));
  }

  /** The diff of the chat's pull request, or of its branch. 404 when nothing was pushed, 503 when the host does not answer. */
  async read(id: string): Promise<{ readonly row: ChatDiffRow; readonly provider: string; readonly diff: string }> {
    const { store, accounts } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    const row = found?.diff;
    if (!row) throw notFound();
    const provider = accounts.providers.get(row.provider_id);
    if (!provider) throw notFound();
    try {
      const { pulls } = await this.#host({ ...found, diff: row }, provider);
      const diff = row.pr_number === null ? await pulls.branchDiff(row.branch) : await pulls.diff(row.pr_number);
      return { row, provider: provider.type, diff };
    } catch (error) {
      if (!(error instanceof PullError)) throw error;
      throw new AppError(error.kind === "missing" ? "not_found" : "overloaded", error.message, { cause: error });
    }
  }

  sweep(): void {}

  idle(): Promise<void> {
    return this.#queue.onIdle();
  }

  stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    this.#queue.clear();
    return this.idle();
  }

  #soon(id: string, look: () => Promise<void>): void {
    if (this.#stopping.signal.aborted || this.#waiting.has(id) || this.#waiting.size >= MAX_WAITING) return;
    this.#waiting.add(id);
    void this.#queue.add(async () => {
      this.#waiting.delete(id);
      await look().catch((error) => {
        if (!this.#stopping.signal.aborted) {
          log("chats").warn("the pull request of chat {chat_id} was not looked at: {error}", { chat_id: id, error });
        }
      });
    });
  }

  /** The repository that was touched last and whose branch is at a host we know. */
  async #learn(id: string): Promise<void> {
    const { store, clock, accounts } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    if (!found || found.chat.archived) return;
    const { repositories } = await this.#references(id, found);
    const now = clock.now();
    for (const { branch, remote_origin, pushed } of repositories.reverse()) {
      const provider = pushed ? accounts.providerFor(remote_origin) : undefined;
      if (!provider || branch === "" || !findPullHost(provider) || !parseRemote(remote_origin)) continue;
      const { diff } = found;
      const isSame =
        diff?.provider_id === provider.id && diff.remote_origin === remote_origin && diff.branch === branch;
      if (!isSame) {
        const row = emptyDiff({ chat: found.chat.key, provider_id: provider.id, remote_origin, branch, now });
        await store.commit(putChatDiff(id, row, now + LEASE_MS), undefined, partIn(found));
      }
      await this.#refresh(id, true);
      return;
    }
  }

  /** What the workspace has checked out; nothing when it cannot be asked. */
  async #references(id: string, { chat }: FoundChatDiff): Promise<GitReferences> {
    const { owner_id, organization_id, workspace_id } = chat;
    const of = { chat_id: id, owner_id, organization_id, workspace_id, run_id: uuid() };
    const { signal } = this.#stopping;
    try {
      const agent = new WorkspaceAgent(this.#deps, of, false);
      return await agent.call<GitReferences>({ method: "GET", path: `/git/references?chat=${id}`, signal });
    } catch {
      return { repositories: [] };
    }
  }

  /** Asks the host and keeps what it says. `moved`: the chat has just been at work. */
  async #refresh(id: string, moved = false): Promise<void> {
    const { store, clock, accounts, topics } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    const before = found?.diff;
    const provider = before && accounts.providers.get(before.provider_id);
    if (!found || !before || !provider || found.chat.archived) {
      await store.commit([askPullLater(id, null)], undefined, partIn(found));
      return;
    }
    const asked = clock.now();
    const isFresh = before.failures === 0 && asked - (before.refreshed_at ?? 0) < FRESH_MS;
    if (moved && isFresh) return;
    const known = { ...before, ...(moved ? { pushed_at: asked } : {}) };
    const row = await this.#asked({ ...found, diff: known }, provider);
    const now = clock.now();
    const wait = nextLook(row, now);
    const rest = this.#resting.get(toRestKey(provider, found)) ?? 0;
    const due = wait === null ? null : Math.max(now + wait, rest);
    const next = { ...row, stale_at: due ?? now + 24 * 3_600_000 };
    await store.commit(putChatDiff(id, next, due), undefined, partIn(found));
    if (formatShown(row) !== formatShown(before)) {
      topics.publish("owner_chats", found.chat.owner_id, { kind: "diff_status_change", chat_id: id });
    }
  }

  /** The row with what the host says, or with one more failure. */
  async #asked(known: Known, provider: Provider): Promise<ChatDiffRow> {
    const { clock } = this.#deps;
    const { diff: row } = known;
    try {
      const { http, pulls } = await this.#host(known, provider);
      const number = await pulls.find(row.branch);
      const pull = number === undefined ? NO_PULL : await pulls.read(number);
      return { ...row, ...pull, kept: http.kept, failures: 0, refreshed_at: clock.now() };
    } catch (error) {
      if (!(error instanceof PullError) && !(error instanceof AppError)) throw error;
      log("chats").debug("{provider} was asked in vain: {error}", { provider: provider.id, error: error.message });
      // A host that limits us is not broken, and is not asked before its time.
      const isLimited = error instanceof PullError && error.kind === "limited";
      return { ...row, failures: isLimited ? row.failures : row.failures + 1 };
    }
  }

  /** The host with the token of the chat's owner. Throws PullError when none exists, and while the host wants to be left alone. */
  async #host({ chat, diff }: Known, provider: Provider): Promise<{ http: PullHttp; pulls: Pulls }> {
    const { accounts, outbound, clock } = this.#deps;
    const host = findPullHost(provider);
    const remote = parseRemote(diff.remote_origin);
    if (!host || !remote) throw new PullError("missing", "The git host has no pull requests that we know of.");
    const key = toRestKey(provider, { chat });
    const until = this.#resting.get(key) ?? 0;
    if (until > clock.now()) throw new PullError("limited", "The git host wants to be left alone for a while.", until);
    const account = await accounts.live(chat.owner_id, provider);
    if (!account) throw new PullError("denied", "The chat's owner has linked no account at the git host.");
    const http = new PullHttp({
      outbound,
      clock,
      api: host.api,
      headers: host.headers(account.access_token),
      kept: diff.kept,
      signal: this.#stopping.signal,
      rest: (time) => this.#rest(key, time),
    });
    return { http, pulls: host.pulls(http, remote.project) };
  }

  #rest(key: string, until: number): void {
    if (this.#resting.size >= MAX_IDLE) this.#resting.clear();
    this.#resting.set(key, until);
  }
}

const toRestKey = ({ id }: Provider, { chat }: Pick<FoundChatDiff, "chat">): string => `${id} ${chat.owner_id}`;

const NO_PULL = {
  pr_number: null,
  pr_state: null,
  pr_draft: false,
  pr_title: "",
  url: "",
  author_login: "",
  author_avatar_url: "",
  base_branch: "",
  head_branch: "",
  additions: 0,
  deletions: 0,
  changed_files: 0,
  commits: 0,
  reviewer_count: 0,
  approved: false,
  changes_requested: false,
} as const;

type Pushed = Pick<ChatDiffRow, "chat" | "provider_id" | "remote_origin" | "branch"> & { readonly now: number };

const emptyDiff = ({ now, ...pushed }: Pushed): ChatDiffRow => ({
  ...pushed,
  ...NO_PULL,
  kept: {},
  failures: 0,
  pushed_at: now,
  refreshed_at: null,
  stale_at: now,
});

/** What watchers would see, but for times. */
const formatShown = ({
  kept: _,
  failures: __,
  refreshed_at: ___,
  stale_at: ____,
  pushed_at: _____,
  ...row
}: ChatDiffRow) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
