// The actor of one chat: the only writer of its row, its history and its queue. Decides by the table of state.ts, commits, announces,
// and starts and stops turns outside of its mailbox; what they report carries the history it belongs to (rules CH-10 to CH-19).
import { findChat, guardPermissions, listChildren, markChatRead } from "#db/chats/chats.ts";
import { repinContext } from "#db/chats/context.ts";
import { findAnswer, type RequestKey } from "#db/chats/requests.ts";
import { type ChatShareChange, changeChatShares, clearChatShares } from "#db/chats/shares.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import { guardSharing } from "#db/workspaces/sharing.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import { outsideTurn } from "../runtime/mailbox.ts";
import { announce, announceAgain, resume, tellChanges, tellReaders } from "./announce.ts";
import { auditSharing, chatEntries } from "./audit.ts";
import { decide, lateOutcome, toOutcome, withAnswer } from "./decide.ts";
import type { ChatDeps } from "./deps.ts";
import { type CheckedCommand, checkedCommand } from "./hooks/checked.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change, CommandInput, CompactionRequest } from "./machine/decision.ts";
import { rememberedRules } from "./machine/permissions.ts";
import { modelAfter, withoutChoice } from "./machine/promoted.ts";
import { transition } from "./machine/state.ts";
import {
  type AnsweredPermissions,
  type ChangeChat,
  type ChatSnapshot,
  type CreateChat,
  type Description,
  type Edited,
  type EditMessage,
  type FamilyMessages,
  isVisible,
  type Late,
  type RecordAgentSession,
  type Reported,
  type Results,
  type SendMessage,
  type Sent,
  type StartedAttempt,
  type Step,
  type TurnReports,
  toPicture,
} from "./messages.ts";
import { chatNotices, hasNotice } from "./notices.ts";
import { cleared, compacted } from "./steering.ts";
import { created } from "./storage/created.ts";
import { changedFamily } from "./storage/family.ts";
import { type ForkChat, forked } from "./storage/fork.ts";
import { purged } from "./storage/purge.ts";
import { readChat, readEdited } from "./storage/read.ts";
import { patchWrites } from "./storage/writes.ts";
import { type Spawned, type SpawnSubagent, spawnRefusal, toCreateSubagent } from "./subagents/create.ts";
import { reportedStep, startedAttempt } from "./turn/attempt.ts";

export class ChatActor extends Actor<ChatState> implements TurnReports, FamilyMessages {
  readonly #deps: ChatDeps;

  constructor(id: string, deps: ChatDeps) {
    super(id, deps.store);
    this.#deps = deps;
  }

  protected part({ part }: ChatState): number {
    return part;
  }

  protected async load(): Promise<ChatState | undefined> {
    const state = await readChat(this.#deps.store, this.id);
    // A turn that is owed but not running: after a start, and after a commit that could not be confirmed.
    if (state) outsideTurn(() => resume(this.#deps.effects, state));
    return state;
  }

  protected override unconfirmed(before: ChatState | undefined, found: ChatState | undefined): void {
    if (found) announceAgain(this.#deps, before, found);
    else tellReaders(this.#deps.topics, this.id);
  }

  protected override entries(
    before: ChatState | undefined,
    outcome: Outcome<ChatState, unknown>,
  ): readonly AuditEntry[] {
    return chatEntries(before, outcome, this.#deps.clock.now());
  }

  protected override notices(
    before: ChatState | undefined,
    outcome: Outcome<ChatState, unknown>,
  ): readonly Statement[] {
    return chatNotices(before, outcome, this.#deps.topics.heard("chat", this.id), this.#deps.clock.now());
  }

  protected override noticed(state: ChatState): void {
    if (hasNotice(state)) this.#deps.topics.publish("notified", state.owner_id, {});
    this.#deps.topics.publish("inbox", state.owner_id, {});
  }

  protected override mayLeave(): boolean {
    return !this.#deps.effects.holdsTurn(this.id);
  }

  /** Makes the chat with its first message; its turn begins. */
  create(args: CreateChat): Promise<Sent> {
    return this.handleCreate<Sent>(async () => {
      const { inserted, state, writes, after } = await created(this.#deps, args);
      return { state, writes, after, reply: { queued: null, messages: inserted.filter(isVisible) } };
    });
  }

  /** Makes the chat as the copy of another one, which keeps what it has; nothing runs until someone writes (rules FK-1 to FK-4). */
  fork(args: ForkChat): Promise<void> {
    return this.handleCreate<void>(async () => ({ ...(await forked(this.#deps, this.id, args)), reply: undefined }));
  }

  /** Refuses as `send`, `edit` or the client's answers would be refused now; changes nothing. For anyone who asks others before (rule HK-8). */
  check(asked: CheckedCommand): Promise<void> {
    return this.handle(async (state) => {
      const command = await checkedCommand(this.#deps, state, asked);
      const decision = transition(state, { ...command, first_id: 0, now: this.#deps.clock.now() });
      if (decision.kind === "refused") throw decision.error;
      return { state, reply: undefined };
    });
  }

  /** Whether `spawn` would make it now. */
  maySpawn(input: SpawnSubagent): Promise<Spawned> {
    return this.handle<Spawned>(async (state) => ({
      state,
      reply: spawnRefusal(state, input, await this.#countChildren()) ?? "done",
    }));
  }

  /**
   * Makes a sub-chat of this root chat for one of its calls, which must still be owed; its turn begins. The same call makes one only.
   * In the root's turn, so that none is made while the family is archived or deleted (rule SB-3).
   */
  spawn(input: SpawnSubagent): Promise<Spawned> {
    return this.handle<Spawned>(async (state) => {
      if (await this.#deps.store.get(findChat({ id: input.id }))) return { state, reply: "done" };
      const refusal = spawnRefusal(state, input, await this.#countChildren());
      if (refusal) return { state, reply: refusal };
      const { writes, after } = await created(this.#deps, toCreateSubagent(state, input));
      return { state, writes, after, reply: "done" };
    });
  }

  /** Sends a user's message, or queues it while the chat is busy. 409, 429. */
  send({ behavior, patch, request_key, ...said }: SendMessage): Promise<Sent> {
    return this.#once(request_key, async (state) => {
      const id = await this.#deps.store.reserve("queued_messages", 1);
      const message = { id, ...said, model_config_id: said.model_config_id ?? modelAfter(state) };
      const change = await decide(this.#deps, state, { type: "send", message, behavior });
      const queued = change.state.queue.find((one) => one.id === id) ?? null;
      const messages = queued ? [] : change.inserted.filter(isVisible);
      const now = queued ? withoutChoice(patch) : patch;
      return toOutcome(this.#deps, state, change, { queued, messages }, now, said.content);
    });
  }

  /** Replaces a user's message and forgets all that came after it. 400 for another kind of message, 404 when it no longer exists. */
  edit(args: EditMessage): Promise<Edited> {
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
      return toOutcome(this.#deps, state, change, reply, patch, content);
    });
  }

  /** Takes a message out of the queue. 404, 409. */
  deleteQueued({ queued_id }: { readonly queued_id: number }): Promise<void> {
    return this.#command({ type: "delete_queued", queued_id });
  }

  /** Lets a queued message go first. 404, 409. */
  promoteQueued({ queued_id }: { readonly queued_id: number }): Promise<void> {
    return this.#command({ type: "promote_queued", queued_id });
  }

  /** Begins a turn that makes the history shorter and ends (rule CM-8). 409. */
  compact(request: CompactionRequest): Promise<void> {
    return this.handle((state) => compacted(this.#deps, state, request));
  }

  /** From here on a model is given nothing of what was said before; people see all of it (rule CM-10). 409. */
  clear(_: Record<string, never>): Promise<void> {
    return this.handle((state) => cleared(this.#deps, state));
  }

  /** Stops the turn, or cancels the calls that the client has not answered. 409. */
  interrupt(_: Record<string, never>): Promise<void> {
    return this.#command({ type: "interrupt" });
  }

  /** The client's answers to the calls that are awaited. 400, 409. */
  completeAction({ results, rows, request_key }: Results): Promise<null> {
    return this.#once(request_key, async (state) => {
      const change = await decide(this.#deps, state, { type: "complete_requires_action", results, rows });
      return toOutcome(this.#deps, state, change, null);
    });
  }

  /** A person's answers to the calls that wait for permission; what is to be remembered changes the chat's rules with them. 400, 409. */
  answerPermissions({ answers }: AnsweredPermissions): Promise<void> {
    return this.handle(async (state) => {
      const given = answers.map(({ tool_call_id, decision }) => ({ tool_call_id, isGranted: decision === "allow" }));
      const change = await decide(this.#deps, state, { type: "answer_permissions", answers: given });
      const patch = rememberedRules(state, answers);
      const outcome = toOutcome(this.#deps, state, change, undefined, patch);
      // Not over rules that its root has changed in the meantime.
      const guard = patch.permissions === undefined ? [] : [guardPermissions(state)];
      return { ...outcome, writes: [...guard, ...(outcome.writes ?? [])] };
    });
  }

  /** Brings a chat in an invalid state back into the table. 409 when it is in a valid one. */
  reconcile(_: Record<string, never>): Promise<void> {
    return this.#command({ type: "reconcile_invalid" });
  }

  /** The timer of awaited results has come. */
  deadlinePassed(_: Record<string, never>): Promise<Late> {
    return this.#report({ type: "cancel_requires_action" });
  }

  /** A budget keeps the next model call from beginning: the chat asks whether to go on. */
  pauseForBudget(args: Parameters<TurnReports["pauseForBudget"]>[0]): Promise<Late> {
    return this.#report({ type: "pause_for_budget", ...args });
  }

  /** The budget that the chat waits for was raised: the same turn goes on. */
  budgetRaised({ budget_id }: { readonly budget_id: string }): Promise<Late> {
    return this.#report({ type: "budget_raised", budget_id });
  }

  /**
   * Metadata, and into the archive or back: one commit, for a root chat with its sub-chats (rules SB-1, SB-3). 400, 409. `pin` is the asked
   * place among the owner's pinned chats, 0 for none. `silent_since`: only when it has not moved since then and is not pinned (rule RT-1).
   */
  change(args: ChangeChat): Promise<void> {
    return this.handle((state) => changedFamily(this.#deps, state, args));
  }

  /** Someone else has written this chat's row: its root, when the family was changed. */
  reload(_: Record<string, never>): Promise<void> {
    return this.handle(async (state) => {
      const fresh = await readChat(this.#deps.store, this.id);
      if (!fresh) return { state, gone: true, after: () => tellReaders(this.#deps.topics, this.id), reply: undefined };
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
   * Deletes an archived root chat with its sub-chats and all that belongs to them; `stale` when it is not archived or has been only
   * since `before`. In small commits, so that nobody waits for them; a crash between two is taken up by the next message (rule RT-3).
   */
  purge({ before }: { readonly before: number }): Promise<Late> {
    return this.handle<Late>((state) => purged(this.#deps, state, before));
  }

  /** Goes by what the workspace tells now, instead of what it told before. */
  pinContext(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({
      state,
      writes: repinContext(state.key, state.workspace_id, this.#deps.clock.now()),
      reply: undefined,
    }));
  }

  /** Lets people and groups read along, or no longer: a root chat with its sub-chats. `stale` where sharing is off by now (CS-6). */
  share({ changes }: { readonly changes: readonly ChatShareChange[] }): Promise<void> {
    return this.handle(async (state) => {
      const { store, clock } = this.#deps;
      const { key, organization_id } = state;
      const adds = changes.some(({ role }) => role !== null);
      const writes = [
        ...(adds ? [guardSharing({ organization_id })] : []),
        ...changeChatShares(key, changes),
        await auditSharing(store, state, changes, clock.now()),
      ];
      return { state, writes, after: () => tellReaders(this.#deps.topics, this.id), reply: undefined };
    });
  }

  /** Nobody else may read it any more. */
  unshare(_: Record<string, never>): Promise<void> {
    const after = () => tellReaders(this.#deps.topics, this.id);
    return this.handle(async (state) => {
      const entry = await auditSharing(this.#deps.store, state, null, this.#deps.clock.now());
      return { state, writes: [clearChatShares(state.key), entry], after, reply: undefined };
    });
  }

  /** What someone has made of the chat's history; `stale` when history, or for a title the title, has changed since. */
  describe({ patch, title, history_version }: Description): Promise<Late> {
    return this.handle<Late>((state) => {
      const isLate = patch.title === undefined ? state.history_version !== history_version : state.title !== title;
      if (isLate) return { state, reply: "stale" };
      const next = { ...state, ...patch };
      const after = () => tellChanges(this.#deps.topics, state, next);
      return { state: next, writes: patchWrites(state, patch), after, reply: "done" };
    });
  }

  /** The owner has seen the chat as it is. */
  markRead(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({ state, writes: [markChatRead(this.id)], reply: undefined }));
  }

  /** The chat as of now, with what its turn has said so far: what comes later is announced under the topic `chat`. */
  snapshot(_: Record<string, never>): Promise<ChatSnapshot> {
    return this.handle((state) => ({
      state,
      reply: { picture: toPicture(state), buffer: this.#deps.effects.saidSoFar(this.id) ?? null },
    }));
  }

  /** After a start: what is owed continues. */
  resume(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({ state, after: () => resume(this.#deps.effects, state), reply: undefined }));
  }

  /** A turn is about to call the model. */
  beginAttempt({ history_version }: { readonly history_version: number }): Promise<StartedAttempt | "stale"> {
    return this.handle((state) => startedAttempt(this.#deps, state, history_version));
  }

  /** The model call failed and will be tried again. */
  recordRetry(args: Parameters<TurnReports["recordRetry"]>[0]): Promise<Late> {
    return this.#report({ type: "record_retry", ...args });
  }

  /** The model call failed for good; what it had said is kept. */
  reportFailure(args: Parameters<TurnReports["reportFailure"]>[0]): Promise<Late> {
    return this.#report({ type: "finish_error", ...args });
  }

  /** The model has ended a step: its messages and what follows from them are one commit. */
  reportStep(step: Step): Promise<Reported | "stale"> {
    return this.handle((state) => reportedStep(this.#deps, state, step));
  }

  /** A coding agent is about to be told what is new: which session knows the chat from now on. */
  recordAgentSession({ history_version, ...session }: RecordAgentSession): Promise<Late> {
    return this.handle<Late>((state) => {
      if (state.history_version !== history_version || state.status !== "running") return { state, reply: "stale" };
      const chosen = state.agent_session?.chosen;
      const patch = { agent_session: { ...session, ...(chosen === undefined ? {} : { chosen }) } };
      return { state: { ...state, ...patch }, writes: patchWrites(state, patch), reply: "done" };
    });
  }

  /** The turn was stopped: this is what it has said. */
  finishInterruption(args: Parameters<TurnReports["finishInterruption"]>[0]): Promise<Late> {
    return this.#report({ type: "finish_interruption", ...args });
  }

  /** One command of a person. */
  #command(input: CommandInput): Promise<void> {
    return this.handle(async (state) =>
      toOutcome(this.#deps, state, await decide(this.#deps, state, input), undefined),
    );
  }

  /** One command of a turn or a timer. */
  #report(input: CommandInput): Promise<Late> {
    return this.handle<Late>((state) => lateOutcome(this.#deps, state, input));
  }

  /** A message whose answer is kept under the key: when the same comes again, that is the answer and nothing happens. 409 for another body. */
  #once<Reply>(
    request: RequestKey | undefined,
    decided: (state: ChatState) => Promise<Outcome<ChatState, Reply>>,
  ): Promise<Reply> {
    return this.handle<Reply>(async (state) => {
      if (request === undefined) return decided(state);
      const known = await findAnswer(this.#deps.store, state.key, request);
      if (known) return { state, reply: known.answer as Reply };
      return withAnswer(this.#deps, state, request, await decided(state));
    });
  }

  async #countChildren(): Promise<number> {
    return (await this.#deps.store.all(listChildren({ root: this.id }))).length;
  }
}
