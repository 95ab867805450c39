// Tracks the pull requests of chats: learns from the workspace which branches a chat has pushed, asks the git host for the status of its
// pull request, and stores it (facts/chats 2.11, 4.4, 6, rules PR-1 to PR-6). Runs outside of every mailbox with limited concurrency,
// triggered by the ends of turns and by the scheduler. The only writer of `chat_diffs`. Does nothing without external-auth providers.

import PQueue from "p-queue";
import { AppError, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Outbound } from "#base/outbound.ts";
import type { Topics } from "#base/topics.ts";
import {
  type ChatDiffRow,
  type ChatWithDiffRow,
  findChatDiff,
  replaceChatDiff,
  scheduleRefresh,
} from "#db/chats/diffs.ts";
import type { Timer } from "#db/engine/timers.ts";
import type { GitReferences } from "#schema/agents/git-message.ts";
import type { Provider } from "#src/git/provider.ts";
import type { Pulls } from "#src/git/pull.ts";
import { findPullHost } from "#src/git/pulls.ts";
import { PullError, PullHttp } from "#src/git/pulls-http.ts";
import { parseRemote } from "#src/git/remote.ts";
import type { Events } from "../../runtime/events.ts";
import type { Service } from "../../runtime/service.ts";
import { type ReachDeps, WorkspaceAgent } from "../turn/tool-agent.ts";
import { FRESH_MS, nextCheckDelay } from "./pull-request-schedule.ts";

/** Looks up people's linked accounts at git hosts; implemented by the account code. */
export type GitAccounts = {
  readonly providers: ReadonlyMap<string, Provider>;
  providerFor(url: string): Provider | undefined;
  /** Returns undefined when the user has no working linked account. */
  getLiveToken(user_id: string, provider: Provider): Promise<{ readonly access_token: string } | undefined>;
};

type Deps = ReachDeps & {
  readonly topics: Topics<Events>;
  readonly accounts: GitAccounts;
  readonly outbound: Outbound;
};

const MAX_CONCURRENT = 6;
/** Maximum number of waiting chats. Other chats are checked after their next turn or at their next timer. */
const MAX_WAITING = 1_000;
/** If a crash interrupts a check, it is repeated after this time. */
const LEASE_MS = 5 * 60_000;
const MAX_RATE_LIMITS = 10_000;

type ChatWithDiff = ChatWithDiffRow & { readonly diff: ChatDiffRow };

export class PullRequestTracker implements Service {
  readonly timers = { chat_diff: ({ actor_id }: Timer) => this.onTimer(actor_id) };
  readonly #deps: Deps;
  readonly #queue = new PQueue({ concurrency: MAX_CONCURRENT });
  readonly #waiting = new Set<string>();
  /** Maps provider and user to the time until which the host has rate-limited us. */
  readonly #rateLimitedUntil = new Map<string, number>();
  readonly #stopping = new AbortController();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** After a turn, checks the workspace for pushed branches. */
  turnEnded({ id, workspace_id }: { readonly id: string; readonly workspace_id: string | null }): void {
    if (workspace_id !== null && this.#deps.accounts.providers.size > 0)
      this.#enqueue(id, () => this.#findPushedBranch(id));
  }

  /** Handles the chat's timer by asking the host, outside of the scheduler. */
  async onTimer(id: string): Promise<void> {
    const { store, clock } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    await store.commit([scheduleRefresh(id, clock.now() + LEASE_MS)], { of: found?.chat.part });
    this.#enqueue(id, () => this.#refresh(id));
  }

  /**
   * Returns the diff of the chat's pull request, or of its branch if there is no pull request. Rejects with 404 when nothing was pushed,
   * and with 503 when the host cannot be used: no response, no linked account, or a rate limit.
   */
  async read(id: string): Promise<{ readonly row: ChatDiffRow; readonly provider: string; readonly diff: string }> {
    const { store, accounts } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    const row = found?.diff;
    if (!row) throw notFound();
    const provider = accounts.providers.get(row.provider_id);
    if (!provider) throw notFound();
    try {
      const { pulls } = await this.#openHost({ ...found, diff: row }, provider);
      const diff = row.pr_number === null ? await pulls.branchDiff(row.branch) : await pulls.diff(row.pr_number);
      return { row, provider: provider.type, diff };
    } catch (error) {
      if (!(error instanceof PullError)) throw error;
      throw new AppError(error.kind === "missing" ? "not_found" : "overloaded", error.message, { cause: error });
    }
  }

  whenIdle(): Promise<void> {
    return this.#queue.onIdle();
  }

  stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    this.#queue.clear();
    return this.whenIdle();
  }

  #enqueue(id: string, check: () => Promise<void>): void {
    if (this.#stopping.signal.aborted || this.#waiting.has(id) || this.#waiting.size >= MAX_WAITING) return;
    this.#waiting.add(id);
    void this.#queue.add(async () => {
      this.#waiting.delete(id);
      await check().catch((error) => {
        if (!this.#stopping.signal.aborted) {
          log("chats").warn("could not check the pull request of chat {chat_id}: {error}", { chat_id: id, error });
        }
      });
    });
  }

  /** Stores the most recently touched repository that has a pushed branch at a known host. */
  async #findPushedBranch(id: string): Promise<void> {
    const { store, clock, accounts } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    if (!found || found.chat.archived) return;
    const { repositories } = await this.#loadReferences(id, found);
    const now = clock.now();
    for (const { branch, remote_origin, pushed } of repositories.reverse()) {
      const provider = pushed ? accounts.providerFor(remote_origin) : undefined;
      if (!provider || branch === "" || !findPullHost(provider) || !parseRemote(remote_origin)) continue;
      const { diff } = found;
      const isSame =
        diff?.provider_id === provider.id && diff.remote_origin === remote_origin && diff.branch === branch;
      if (!isSame) {
        const row = toEmptyDiff({ chat: found.chat.key, provider_id: provider.id, remote_origin, branch, now });
        await store.commit(replaceChatDiff(id, row, now + LEASE_MS), { of: found?.chat.part });
      }
      await this.#refresh(id, true);
      return;
    }
  }

  /** Returns the workspace's checked-out branches, or none when it cannot be reached. */
  async #loadReferences(id: string, { chat }: ChatWithDiffRow): Promise<GitReferences> {
    const { owner_id, organization_id, workspace_id } = chat;
    const scope = { chat_id: id, owner_id, organization_id, workspace_id, run_id: uuid() };
    const { signal } = this.#stopping;
    try {
      const agent = new WorkspaceAgent(this.#deps, scope, false);
      return await agent.call<GitReferences>({ method: "GET", path: `/git/references?chat=${id}`, signal });
    } catch {
      return { repositories: [] };
    }
  }

  /** Asks the host and stores the result. `isActive`: the chat was just active. */
  async #refresh(id: string, isActive = false): Promise<void> {
    const { store, clock, accounts, topics } = this.#deps;
    const found = await store.get(findChatDiff({ id }));
    const before = found?.diff;
    const provider = before && accounts.providers.get(before.provider_id);
    if (!found || !before || !provider || found.chat.archived) {
      await store.commit([scheduleRefresh(id, null)], { of: found?.chat.part });
      return;
    }
    const requestedAt = clock.now();
    const isFresh = before.failures === 0 && requestedAt - (before.refreshed_at ?? 0) < FRESH_MS;
    if (isActive && isFresh) return;
    const known = { ...before, ...(isActive ? { pushed_at: requestedAt } : {}) };
    const row = await this.#loadUpdated({ ...found, diff: known }, provider);
    const now = clock.now();
    const delayMs = nextCheckDelay(row, now);
    const limitedUntil = this.#rateLimitedUntil.get(toRateLimitKey(provider, found)) ?? 0;
    const due = delayMs === null ? null : Math.max(now + delayMs, limitedUntil);
    const next = { ...row, stale_at: due ?? now + 24 * 3_600_000 };
    await store.commit(replaceChatDiff(id, next, due), { of: found?.chat.part });
    if (serializeVisibleFields(row) !== serializeVisibleFields(before)) {
      topics.publish("owner_chats", found.chat.owner_id, { kind: "diff_status_change", chat_id: id });
    }
  }

  /** Returns the row updated from the host, or with its failure count increased. */
  async #loadUpdated(known: ChatWithDiff, provider: Provider): Promise<ChatDiffRow> {
    const { clock } = this.#deps;
    const { diff: row } = known;
    try {
      const { http, pulls } = await this.#openHost(known, provider);
      const number = await pulls.find(row.branch);
      const pull = number === undefined ? NO_PULL_REQUEST : await pulls.read(number);
      return { ...row, ...pull, kept: http.kept, failures: 0, refreshed_at: clock.now() };
    } catch (error) {
      if (!(error instanceof PullError) && !(error instanceof AppError)) throw error;
      log("chats").debug("request to {provider} failed: {error}", { provider: provider.id, error: error.message });
      // Rate limiting is not a failure. The next check runs after the limit expires.
      const isLimited = error instanceof PullError && error.kind === "limited";
      return { ...row, failures: isLimited ? row.failures : row.failures + 1 };
    }
  }

  /**
   * Returns a client for the host with the chat owner's token. Throws `PullError` without a linked account, or while the host rate-limits
   * us.
   */
  async #openHost({ chat, diff }: ChatWithDiff, provider: Provider): Promise<{ http: PullHttp; pulls: Pulls }> {
    const { accounts, outbound, clock } = this.#deps;
    const host = findPullHost(provider);
    const remote = parseRemote(diff.remote_origin);
    if (!host || !remote) throw new PullError("missing", "Slipway does not support pull requests on this git host.");
    const key = toRateLimitKey(provider, { chat });
    const until = this.#rateLimitedUntil.get(key) ?? 0;
    if (until > clock.now())
      throw new PullError("limited", "The git host is rate limiting requests. Slipway retries later.", until);
    const account = await accounts.getLiveToken(chat.owner_id, provider);
    if (!account) throw new PullError("denied", "The chat's owner has not linked an account at the git host.");
    const http = new PullHttp({
      outbound,
      clock,
      api: host.api,
      headers: host.headers(account.access_token),
      kept: diff.kept,
      signal: this.#stopping.signal,
      rest: (time) => this.#pauseHost(key, time),
    });
    return { http, pulls: host.pulls(http, remote.project) };
  }

  #pauseHost(key: string, until: number): void {
    if (this.#rateLimitedUntil.size >= MAX_RATE_LIMITS) this.#rateLimitedUntil.clear();
    this.#rateLimitedUntil.set(key, until);
  }
}

const toRateLimitKey = ({ id }: Provider, { chat }: Pick<ChatWithDiffRow, "chat">): string => `${id} ${chat.owner_id}`;

const NO_PULL_REQUEST = {
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

type PushedBranch = Pick<ChatDiffRow, "chat" | "provider_id" | "remote_origin" | "branch"> & { readonly now: number };

const toEmptyDiff = ({ now, ...pushed }: PushedBranch): ChatDiffRow => ({
  ...pushed,
  ...NO_PULL_REQUEST,
  kept: {},
  failures: 0,
  pushed_at: now,
  refreshed_at: null,
  stale_at: now,
});

/** Formats what watchers see, without times, to detect changes. */
const serializeVisibleFields = ({
  kept: _,
  failures: __,
  refreshed_at: ___,
  stale_at: ____,
  pushed_at: _____,
  ...row
}: ChatDiffRow) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
