// The actor of one chat: the only writer of its row, history and queue. Decides by the table in machine/state.ts, commits, then announces
// the change and starts or stops turns, which run outside of its mailbox. A turn's reports name the history version that they belong to
// (rules CH-10 to CH-19).
import { log } from "#base/log.ts";
import { findChat, guardPermissions, listChildren, markChatRead } from "#db/chats/chats.ts";
import { repinContext } from "#db/chats/context.ts";
import { findAnswer, type RequestKey } from "#db/chats/requests.ts";
import { type ChatShareChange, changeChatShares, clearChatShares, listChatShares } from "#db/chats/shares.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import { guardSharing } from "#db/workspaces/sharing.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import { runOutsideMailbox } from "../runtime/mailbox.ts";
import { announce, announceAccessChange, announceListChanges, announceReload, resume } from "./announce.ts";
import { auditChatChanges, auditSharing } from "./audit.ts";
import { clearContext, requestCompaction } from "./context-control.ts";
import { decide, detachFiles, toOutcome, toReportOutcome, withAnswer } from "./decide.ts";
import type { ChatDeps } from "./deps.ts";
import { buildCheckedCommand, type CheckedCommand } from "./hooks/hook-commands.ts";
import type { ChatState } from "./machine/chat-state.ts";
import { CRASHED, countCrash, MAX_CRASHES } from "./machine/crashes.ts";
import type { Change, CommandInput, CompactionRequest } from "./machine/decision.ts";
import { addRememberedRules } from "./machine/permissions.ts";
import { dropModelChoice, modelAfter } from "./machine/promoted.ts";
import { transition } from "./machine/state.ts";
import {
  type AnsweredPermissions,
  type ChangeChat,
  type ChatSnapshot,
  type CreateChat,
  type Description,
  type EditMessage,
  type EditResult,
  type FamilyMessages,
  isVisible,
  type LateResult,
  type RecordAgentSession,
  type ReportResult,
  type Results,
  type SendMessage,
  type SendResult,
  type StartedAttempt,
  type Step,
  type TurnReports,
  toPicture,
} from "./messages.ts";
import { buildChatNotices, buildShareNotices, hasNotice } from "./notices.ts";
import { buildChat } from "./storage/created.ts";
import { changeFamily, withChildren } from "./storage/family.ts";
import { type ForkChat, forkChat } from "./storage/fork.ts";
import { purgeChat } from "./storage/purge.ts";
import { readChat, readEdited } from "./storage/read.ts";
import { toPatchWrites } from "./storage/writes.ts";
import { findSpawnRefusal, type SpawnResult, type SpawnSubagent, toCreateSubagent } from "./subagents/create.ts";
import { startAttempt, storeStep } from "./turn/attempt.ts";

export class ChatActor extends Actor<ChatState> implements TurnReports, FamilyMessages {
  readonly #deps: ChatDeps;

  constructor(id: string, deps: ChatDeps) {
    super(id, deps.store);
    this.#deps = deps;
  }

  protected toPart({ part }: ChatState): number {
    return part;
  }

  protected async load(): Promise<ChatState | undefined> {
    const state = await readChat(this.#deps.store, this.id);
    // After a server start or an unconfirmed commit, a chat can be in the state `running` without a running turn.
    if (state) runOutsideMailbox(() => this.#resumeLoaded(state));
    return state;
  }

  protected override onUnconfirmedCommit(before: ChatState | undefined, found: ChatState | undefined): void {
    if (found) announceReload(this.#deps, before, found);
    else announceAccessChange(this.#deps.topics, this.id);
  }

  protected override buildEntries(
    before: ChatState | undefined,
    outcome: Outcome<ChatState, unknown>,
  ): readonly AuditEntry[] {
    return auditChatChanges(before, outcome, this.#deps.clock.now());
  }

  protected override buildNotices(
    before: ChatState | undefined,
    outcome: Outcome<ChatState, unknown>,
  ): readonly Statement[] {
    return buildChatNotices(before, outcome, this.#deps.topics.hasListeners("chat", this.id), this.#deps.clock.now());
  }

  protected override onNoticesStored(state: ChatState): void {
    if (hasNotice(state)) this.#deps.topics.publish("notified", state.owner_id, {});
    this.#deps.topics.publish("inbox", state.owner_id, {});
  }

  protected override canUnload(): boolean {
    return !this.#deps.effects.hasActiveTurn(this.id);
  }

  /** Creates the chat with its first message and begins its turn. */
  create(args: CreateChat): Promise<SendResult> {
    return this.handleCreate<SendResult>(async () => {
      const { inserted, state, writes, after } = await buildChat(this.#deps, args);
      return { state, writes, after, reply: { queued: null, messages: inserted.filter(isVisible) } };
    });
  }

  /** Creates the chat as a copy of another one. No turn starts until someone sends a message (rules FK-1 to FK-4). */
  fork(args: ForkChat): Promise<void> {
    return this.handleCreate<void>(async () => ({ ...(await forkChat(this.#deps, this.id, args)), reply: undefined }));
  }

  /** Rejects if this command would be rejected now. Changes nothing. For callers that ask a hook before they send the command (rule HK-8). */
  check(requested: CheckedCommand): Promise<void> {
    return this.handle(async (state) => {
      const command = await buildCheckedCommand(this.#deps, state, requested);
      const decision = transition(state, { ...command, first_id: 0, now: this.#deps.clock.now() });
      if (decision.kind === "refused") throw decision.error;
      return { state, reply: undefined };
    });
  }

  /** Checks whether `spawn` would succeed now. */
  maySpawn(input: SpawnSubagent): Promise<SpawnResult> {
    return this.handle<SpawnResult>(async (state) => ({
      state,
      reply: findSpawnRefusal(state, input, await this.#countChildren()) ?? "done",
    }));
  }

  /**
   * Creates a sub-chat of this root chat for a call that still needs a result, and begins its turn. Idempotent per call. Runs in the root's
   * mailbox, so that no sub-chat is created while the family is being archived or deleted (rule SB-3).
   */
  spawn(input: SpawnSubagent): Promise<SpawnResult> {
    return this.handle<SpawnResult>(async (state) => {
      if (await this.#deps.store.get(findChat({ id: input.id }))) return { state, reply: "done" };
      const refusal = findSpawnRefusal(state, input, await this.#countChildren());
      if (refusal) return { state, reply: refusal };
      const { writes, after } = await buildChat(this.#deps, toCreateSubagent(state, input));
      return { state, writes, after, reply: "done" };
    });
  }

  /** Sends a user's message, or queues it while the chat is busy. Rejects with 409 or 429. */
  send({ behavior, patch, request_key, ...text }: SendMessage): Promise<SendResult> {
    return this.#handleOnce(request_key, async (state) => {
      const id = await this.#deps.store.reserve("queued_messages", 1);
      const message = { id, ...text, model_config_id: text.model_config_id ?? modelAfter(state) };
      const change = await decide(this.#deps, state, { type: "send", message, behavior });
      const queued = change.state.queue.find((one) => one.id === id) ?? null;
      const messages = queued ? [] : change.inserted.filter(isVisible);
      const currentPatch = queued ? dropModelChoice(patch) : patch;
      const outcome = toOutcome(this.#deps, state, change, { queued, messages }, currentPatch, text.content);
      return withChildren(this.#deps, state, patch, outcome);
    });
  }

  /** Replaces a user's message and deletes all later ones. Rejects with 400 for another kind of message, 404 when it no longer exists. */
  edit(args: EditMessage): Promise<EditResult> {
    const { message_id, content, created_by, custom_prompt = null, model_config_id, patch } = args;
    return this.handle(async (state) => {
      const { target, last_assistant_id, deleted_ids } = await readEdited(this.#deps.store, state.key, message_id);
      const change = await decide(this.#deps, state, {
        type: "edit",
        from: message_id,
        last_assistant_id,
        message: {
          role: "user",
          visibility: target.visibility,
          content,
          created_by,
          custom_prompt,
          model_config_id: model_config_id ?? target.model_config_id,
          usage: null,
        },
      });
      const reply = { deleted_ids, messages: change.inserted.filter(isVisible) };
      const outcome = toOutcome(this.#deps, state, change, reply, patch, content);
      return withChildren(this.#deps, state, patch, await detachFiles(this.#deps, state, change, outcome));
    });
  }

  /** Removes a message from the queue. Rejects with 404 or 409. */
  deleteQueued({ queued_id }: { readonly queued_id: number }): Promise<void> {
    return this.handle(async (state) => {
      const change = await decide(this.#deps, state, { type: "delete_queued", queued_id });
      return detachFiles(this.#deps, state, change, toOutcome(this.#deps, state, change, undefined));
    });
  }

  /** Promotes a queued message ahead of the others. Rejects with 404 or 409. */
  promoteQueued({ queued_id }: { readonly queued_id: number }): Promise<void> {
    return this.#command({ type: "promote_queued", queued_id });
  }

  /** Starts a turn that only compacts the history (rule CM-8). Rejects with 409. */
  compact(request: CompactionRequest): Promise<void> {
    return this.handle((state) => requestCompaction(this.#deps, state, request));
  }

  /**
   * Clears the model's context: models get none of the earlier messages, while people still see all of them (rule CM-10). Rejects with 409.
   */
  clear(_: Record<string, never>): Promise<void> {
    return this.handle((state) => clearContext(this.#deps, state));
  }

  /** Stops the turn, or cancels the calls that the client has not answered. Rejects with 409. */
  interrupt(_: Record<string, never>): Promise<void> {
    return this.#command({ type: "interrupt" });
  }

  /** Stores the client's results of the awaited calls. Rejects with 400 or 409. */
  completeAction({ results, rows, request_key }: Results): Promise<null> {
    return this.#handleOnce(request_key, async (state) => {
      const change = await decide(this.#deps, state, { type: "complete_requires_action", results, rows });
      return toOutcome(this.#deps, state, change, null);
    });
  }

  /** Stores a person's answers to calls that wait for approval, and the rules to remember. Rejects with 400 or 409. */
  answerPermissions({ answers }: AnsweredPermissions): Promise<void> {
    return this.handle(async (state) => {
      const permissions = answers.map(({ tool_call_id, decision }) => ({
        tool_call_id,
        permission: decision === "allow" ? ("granted" as const) : ("refused" as const),
      }));
      const change = await decide(this.#deps, state, { type: "answer_permissions", answers: permissions });
      const patch = addRememberedRules(state, answers);
      const outcome = toOutcome(this.#deps, state, change, undefined, patch);
      // The root chat may have changed the rules since this chat was loaded. The commit must not overwrite them.
      const guard = patch.permissions === undefined ? [] : [guardPermissions(state)];
      return { ...outcome, writes: [...guard, ...(outcome.writes ?? [])] };
    });
  }

  /** Repairs a chat in an invalid state. Rejects with 409 when the state is valid. */
  reconcile(_: Record<string, never>): Promise<void> {
    return this.#command({ type: "reconcile_invalid" });
  }

  /** Handles the timer for awaited results. */
  deadlinePassed(_: Record<string, never>): Promise<LateResult> {
    return this.#report({ type: "cancel_requires_action" });
  }

  /** Pauses before the next model call because of a budget, and asks whether to continue. */
  pauseForBudget(args: Parameters<TurnReports["pauseForBudget"]>[0]): Promise<LateResult> {
    return this.#report({ type: "pause_for_budget", ...args });
  }

  /** Continues the turn after the budget it waits for was raised. */
  budgetRaised({ budget_id }: { readonly budget_id: string }): Promise<LateResult> {
    return this.#report({ type: "budget_raised", budget_id });
  }

  /**
   * Changes metadata, archives or unarchives, in one commit; for a root chat together with its sub-chats (rules SB-1, SB-3). Rejects with
   * 400 or 409.
   */
  change(args: ChangeChat): Promise<void> {
    return this.handle((state) => changeFamily(this.#deps, state, args));
  }

  /** Reloads the chat's row after its root has written it. */
  reload(_: Record<string, never>): Promise<void> {
    return this.handle(async (state) => {
      const fresh = await readChat(this.#deps.store, this.id);
      if (!fresh)
        return { state, gone: true, after: () => announceAccessChange(this.#deps.topics, this.id), reply: undefined };
      const change: Change<ChatState> = {
        kind: "change",
        state: fresh,
        inserted: [],
        promoted: [],
        deleted_from: null,
        effects: [],
      };
      return { state: fresh, after: () => announce(this.#deps, state, change), reply: undefined };
    });
  }

  /**
   * Deletes an archived root chat with its sub-chats and all their data. Returns `stale` when it is not archived, or was archived after
   * `before`. Deletes in small commits so that other writers are not delayed. After a crash, the next `purge` continues (rule RT-3).
   */
  purge({ before }: { readonly before: number }): Promise<LateResult> {
    return this.handle<LateResult>((state) => purgeChat(this.#deps, state, before));
  }

  /** Pins the workspace's current context in place of the earlier one. */
  pinContext(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({
      state,
      writes: repinContext(state.key, state.workspace_id, this.#deps.clock.now()),
      reply: undefined,
    }));
  }

  /**
   * Changes which people and groups can read a root chat and its sub-chats. `by` is the username of the person who shares it. The commit is
   * rejected as stale when sharing has been disabled (rule CS-6).
   */
  share({ changes, by = "" }: { readonly changes: readonly ChatShareChange[]; readonly by?: string }): Promise<void> {
    return this.handle(async (state) => {
      const { store, clock } = this.#deps;
      const { key, organization_id } = state;
      const grantsAccess = changes.some(({ role }) => role !== null);
      const writes = [
        ...(grantsAccess ? [guardSharing({ organization_id })] : []),
        ...changeChatShares(key, changes),
        ...buildShareNotices(state, changes, by, clock.now()),
        await auditSharing(store, state, changes, clock.now()),
      ];
      return { state, writes, after: () => announceAccessChange(this.#deps.topics, this.id), reply: undefined };
    });
  }

  /** Revokes all shares. */
  unshare(_: Record<string, never>): Promise<void> {
    const after = () => announceAccessChange(this.#deps.topics, this.id);
    return this.handle(async (state) => {
      const { store, clock } = this.#deps;
      const shares = await store.all(listChatShares({ chat: state.key }));
      const removed = shares.map(({ subject, kind }) => ({ subject, kind, role: null }));
      const entry = await auditSharing(store, state, null, clock.now());
      const writes = [clearChatShares(state.key), ...buildShareNotices(state, removed, "", clock.now()), entry];
      return { state, writes, after, reply: undefined };
    });
  }

  /** Stores a generated title or summary. Returns `stale` if its source has changed: the history, or for a title, the previous title. */
  describe({ patch, title, history_version }: Description): Promise<LateResult> {
    return this.handle<LateResult>((state) => {
      const isStale = patch.title === undefined ? state.history_version !== history_version : state.title !== title;
      if (isStale) return { state, reply: "stale" };
      const next = { ...state, ...patch };
      const after = () => announceListChanges(this.#deps.topics, state, next);
      return { state: next, writes: toPatchWrites(state, patch), after, reply: "done" };
    });
  }

  /** Marks the chat as read by its owner. */
  markRead(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({ state, writes: [markChatRead(this.id)], reply: undefined }));
  }

  /** Returns the chat with the current output of its turn. Later changes are announced under the topic `chat`. */
  snapshot(_: Record<string, never>): Promise<ChatSnapshot> {
    return this.handle((state) => ({
      state,
      reply: { picture: toPicture(state), buffer: this.#deps.effects.getPartialOutput(this.id) ?? null },
    }));
  }

  /** Continues pending work after a server start. Fails a turn that may have crashed the server repeatedly (rule CH-52). */
  resume(_: Record<string, never>): Promise<void> {
    return this.handle<void>(async (state) => {
      const { effects } = this.#deps;
      const crashes = effects.hasActiveTurn(this.id) ? undefined : countCrash(state);
      if (crashes === undefined) return { state, after: () => resume(effects, state), reply: undefined };
      if (crashes.count >= MAX_CRASHES) {
        const { history_version, generation_attempt } = state;
        const fence = { history_version, generation_attempt };
        const failed = await toReportOutcome(this.#deps, state, { type: "finish_error", fence, error: CRASHED });
        return { ...failed, reply: undefined };
      }
      const next = { ...state, crashes };
      const writes = toPatchWrites(state, { crashes });
      return { state: next, writes, after: () => resume(effects, next), reply: undefined };
    });
  }

  /** Records that the server has stopped the turn on purpose, so that the stop does not count as a crash. */
  noteStopped(_: Record<string, never>): Promise<void> {
    return this.handle<void>((state) => {
      const counted = countCrash(state);
      if (counted === undefined) return { state, reply: undefined };
      const crashes = { ...counted, count: counted.count - 1 };
      return { state: { ...state, crashes }, writes: toPatchWrites(state, { crashes }), reply: undefined };
    });
  }

  #resumeLoaded(state: ChatState): void {
    const { effects } = this.#deps;
    if (effects.hasActiveTurn(this.id) || countCrash(state) === undefined) {
      resume(effects, state);
      return;
    }
    void this.resume({}).catch((error) =>
      log("chats").error("chat {id} cannot continue: {error}", { id: this.id, error }),
    );
  }

  /** Begins a turn's attempt to call the model. */
  beginAttempt({ history_version }: { readonly history_version: number }): Promise<StartedAttempt | "stale"> {
    return this.handle((state) => startAttempt(this.#deps, state, history_version));
  }

  /** Records that the model call failed and will be retried. */
  recordRetry(args: Parameters<TurnReports["recordRetry"]>[0]): Promise<LateResult> {
    return this.#report({ type: "record_retry", ...args });
  }

  /** Records that the model call failed permanently. Its partial output is kept. */
  reportFailure(args: Parameters<TurnReports["reportFailure"]>[0]): Promise<LateResult> {
    return this.#report({ type: "finish_error", ...args });
  }

  /** Stores a finished step of the model: its messages and all consequences in one commit. */
  reportStep(step: Step): Promise<ReportResult | "stale"> {
    return this.handle((state) => storeStep(this.#deps, state, step));
  }

  /** Records the coding agent's session that is about to receive the chat's new messages. */
  recordAgentSession({ history_version, ...session }: RecordAgentSession): Promise<LateResult> {
    return this.handle<LateResult>((state) => {
      if (state.history_version !== history_version || state.status !== "running") return { state, reply: "stale" };
      const chosen = state.agent_session?.chosen;
      const patch = { agent_session: { ...session, ...(chosen === undefined ? {} : { chosen }) } };
      return { state: { ...state, ...patch }, writes: toPatchWrites(state, patch), reply: "done" };
    });
  }

  /** Stores the output of a turn that was stopped. */
  finishInterruption(args: Parameters<TurnReports["finishInterruption"]>[0]): Promise<LateResult> {
    return this.#report({ type: "finish_interruption", ...args });
  }

  /** Handles a command of a person. */
  #command(input: CommandInput): Promise<void> {
    return this.handle(async (state) =>
      toOutcome(this.#deps, state, await decide(this.#deps, state, input), undefined),
    );
  }

  /** Handles a command of a turn or a timer. */
  #report(input: CommandInput): Promise<LateResult> {
    return this.handle<LateResult>((state) => toReportOutcome(this.#deps, state, input));
  }

  /** Handles a message once per idempotency key. A retry gets the stored answer; a different body with the same key is rejected with 409. */
  #handleOnce<Reply>(
    request: RequestKey | undefined,
    handleCommand: (state: ChatState) => Promise<Outcome<ChatState, Reply>>,
  ): Promise<Reply> {
    return this.handle<Reply>(async (state) => {
      if (request === undefined) return handleCommand(state);
      const stored = await findAnswer(this.#deps.store, state.key, request);
      if (stored) return { state, reply: stored.answer as Reply };
      return withAnswer(this.#deps, state, request, await handleCommand(state));
    });
  }

  async #countChildren(): Promise<number> {
    return (await this.#deps.store.all(listChildren({ root: this.id }))).length;
  }
}
