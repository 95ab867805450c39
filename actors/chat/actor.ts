// The actor of one chat: the only writer of its row, its history and its queue. Decides by the table of state.ts, commits, announces,
// and starts and stops turns outside of its mailbox; what they report carries the history it belongs to (rules CH-10 to CH-19).
import { findChat, guardPermissions, listChildren, markChatRead } from "#db/chats/chats.ts";
import { pinContextOnce, repinContext } from "#db/chats/context.ts";
import { type ChatShareChange, changeChatShares, clearChatShares } from "#db/chats/shares.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { guardSharing } from "#db/workspaces/sharing.ts";
import { chatModel } from "#src/llm/chat-model.ts";
import type { ModelInfo } from "#src/llm/model.ts";
import { announce, resume, tellChanges } from "./announce.ts";
import { chatDeleted, toldSharing } from "./audit.ts";
import { ChatCore, type Wish } from "./chat-core.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change, Command } from "./machine/decision.ts";
import { permittedCalls, rememberedRules } from "./machine/permissions.ts";
import { modelAfter, withoutChoice } from "./machine/promoted.ts";
import {
  type AnsweredPermissions,
  type ChangeChat,
  type ChatSnapshot,
  type CreateChat,
  type Description,
  type Edited,
  type EditMessage,
  isVisible,
  type Late,
  pictureOf,
  type Reported,
  type Results,
  type SendMessage,
  type Sent,
  type StartedAttempt,
  type Step,
} from "./messages.ts";
import { created } from "./storage/created.ts";
import { changedFamily } from "./storage/family.ts";
import { type ForkChat, forked } from "./storage/fork.ts";
import { emptyChat, removeChat } from "./storage/purge.ts";
import { readChat, readChildren, readEdited } from "./storage/read.ts";
import { joined, patchWrites } from "./storage/writes.ts";
import { type Spawned, type SpawnSubagent, spawnRefusal, subagentOf } from "./subagents/create.ts";
import { aboutOf, callsToRun, offeredTools, offersProviderTools } from "./turn/offer.ts";

export type { StartedAttempt } from "./messages.ts";

export class ChatActor extends ChatCore {
  /** Makes the chat with its first message; its turn begins. */
  create(args: CreateChat): Promise<Sent> {
    return this.birth<Sent>(async () => {
      const { inserted, ...born } = await created(this.parts, args);
      return { ...born, reply: { queued: null, messages: inserted.filter(isVisible) } };
    });
  }

  /** Makes the chat as the copy of another one, which keeps what it has; nothing runs until somebody writes (rules FK-1 to FK-4). */
  fork(args: ForkChat): Promise<void> {
    return this.birth<void>(async () => ({ ...(await forked(this.parts, this.id, args)), reply: undefined }));
  }

  /**
   * Makes a sub-chat of this root chat for one of its calls, which must still be owed; its turn begins. The same call makes one only.
   * In the root's turn, so that none is made while the family is archived or deleted (rule SB-3).
   */
  spawn(wish: SpawnSubagent): Promise<Spawned> {
    return this.handle<Spawned>(async (state) => {
      const { store } = this.parts;
      if (await store.get(findChat({ id: wish.id }))) return { state, reply: "done" };
      const refusal = spawnRefusal(state, wish, (await store.all(listChildren({ root: this.id }))).length);
      if (refusal) return { state, reply: refusal };
      const { writes, after } = await created(this.parts, subagentOf(state, wish));
      return { state, writes, after, reply: "done" };
    });
  }

  /** Sends a user's message, or queues it while the chat is busy. 409, 429. */
  send({ behavior, patch, request_key, ...said }: SendMessage): Promise<Sent> {
    return this.once(request_key, async (state) => {
      const id = await this.parts.store.reserve("queued_messages", 1);
      const message = { id, ...said, model_config_id: said.model_config_id ?? modelAfter(state) };
      const change = await this.decide(state, { type: "send", message, behavior });
      const queued = change.state.queue.find((one) => one.id === id) ?? null;
      const messages = queued ? [] : change.inserted.filter(isVisible);
      const now = queued ? withoutChoice(patch) : patch;
      return this.outcome(state, change, { queued, messages }, now, said.content);
    });
  }

  /** Replaces a user's message and forgets all that came after it. 400 for another kind of message, 404 when it is gone. */
  edit(args: EditMessage): Promise<Edited> {
    const { message_id, content, created_by, custom_prompt = null, model_config_id, patch } = args;
    return this.handle(async (state) => {
      const { target, last_assistant_id, deleted_ids } = await readEdited(this.parts.store, state.key, message_id);
      const change = await this.decide(state, {
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
      return this.outcome(state, change, reply, patch, content);
    });
  }

  /** Takes a message out of the queue. 404, 409. */
  deleteQueued({ queued_id }: { readonly queued_id: number }): Promise<void> {
    return this.handleCommand({ type: "delete_queued", queued_id });
  }

  /** Lets a queued message go first. 404, 409. */
  promoteQueued({ queued_id }: { readonly queued_id: number }): Promise<void> {
    return this.handleCommand({ type: "promote_queued", queued_id });
  }

  /** Stops the turn, or cancels the calls that the client has not answered. 409. */
  interrupt(_: Record<string, never>): Promise<void> {
    return this.handleCommand({ type: "interrupt" });
  }

  /** The client's answers to the calls that are awaited. 400, 409. */
  completeAction({ results, rows, request_key }: Results): Promise<null> {
    return this.once(request_key, async (state) => {
      const change = await this.decide(state, { type: "complete_requires_action", results, rows });
      return this.outcome(state, change, null);
    });
  }

  /** A person's answers to the calls that wait for permission; what is to be remembered changes the chat's rules with them. 400, 409. */
  answerPermissions({ answers }: AnsweredPermissions): Promise<void> {
    return this.handle(async (state) => {
      const given = answers.map(({ tool_call_id, decision }) => ({ tool_call_id, isGranted: decision === "allow" }));
      const change = await this.decide(state, { type: "answer_permissions", answers: given });
      const patch = rememberedRules(state, answers);
      const outcome = this.outcome(state, change, undefined, patch);
      // Not over rules that its root has changed in the meantime.
      const guard = patch.permissions === undefined ? [] : [guardPermissions(state)];
      return { ...outcome, writes: [...guard, ...(outcome.writes ?? [])] };
    });
  }

  /** Brings a chat in an invalid state back into the table. 409 when it is in a valid one. */
  reconcile(_: Record<string, never>): Promise<void> {
    return this.handleCommand({ type: "reconcile_invalid" });
  }

  /** The timer of awaited results has come. */
  deadlinePassed(_: Record<string, never>): Promise<Late> {
    return this.report({ type: "cancel_requires_action" });
  }

  /**
   * Metadata, and into the archive or back: one commit, for a root chat with its sub-chats (rules SB-1, SB-3). 400, 409. `pin` is the wished
   * place among the owner's pinned chats, 0 for none. `silent_since`: only when it has not moved since then and is not pinned (rule RT-1).
   */
  change(args: ChangeChat): Promise<void> {
    return this.handle((state) => changedFamily(this.parts, state, args, (one, wish) => this.decide(one, wish)));
  }

  /** Somebody else has written this chat's row: its root, when the family was changed. */
  reload(_: Record<string, never>): Promise<void> {
    return this.handle(async (state) => {
      const fresh = await readChat(this.parts.store, this.id);
      if (!fresh) return { state, gone: true, after: () => this.#tellReaders(), reply: undefined };
      const change: Change<ChatState> = { kind: "change", state: fresh, inserted: [], deleted_from: null, effects: [] };
      return { state: fresh, after: () => announce(this.parts, state, change), reply: undefined };
    });
  }

  /**
   * Deletes an archived root chat with its sub-chats and all that belongs to them; `stale` when it is not archived or has been only
   * since `before`. In small commits, so that nobody waits for them; a crash between two is taken up by the next message (rule RT-3).
   */
  purge({ before }: { readonly before: number }): Promise<Late> {
    return this.handle<Late>(async (state) => {
      const { store, chats, clock, topics } = this.parts;
      if (!state.archived || state.parent_chat_id !== null || state.updated_at >= before)
        return { state, reply: "stale" };
      const children = await readChildren(store, this.id, true);
      for (const child of children) {
        await emptyChat(store, child.key);
        await store.commit([...removeChat(child), audited(chatDeleted(child, clock.now()))]);
      }
      await emptyChat(store, state.key);
      const after = () => {
        this.#tellReaders();
        for (const { id } of children) {
          topics.publish("access_changed", id, {});
          void chats()
            .ask(id, "reload", {})
            .catch(() => {});
        }
      };
      return { state, gone: true, writes: removeChat(state), after, reply: "done" };
    });
  }

  /** Goes by what the workspace tells now, instead of what it told before. */
  pinContext(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({
      state,
      writes: repinContext(state.key, state.workspace_id, this.parts.clock.now()),
      reply: undefined,
    }));
  }

  /** Lets people and groups read along, or no longer: a root chat with its sub-chats. `stale` where sharing is off by now (CS-6). */
  share({ changes }: { readonly changes: readonly ChatShareChange[] }): Promise<void> {
    return this.handle(async (state) => {
      const { store, clock } = this.parts;
      const { key, organization_id } = state;
      const adds = changes.some(({ role }) => role !== null);
      const writes = [
        ...(adds ? [guardSharing({ organization_id })] : []),
        ...changeChatShares(key, changes),
        await toldSharing(store, state, changes, clock.now()),
      ];
      return { state, writes, after: () => this.#tellReaders(), reply: undefined };
    });
  }

  /** Nobody else may read it any more. */
  unshare(_: Record<string, never>): Promise<void> {
    const after = () => this.#tellReaders();
    return this.handle(async (state) => {
      const told = await toldSharing(this.parts.store, state, null, this.parts.clock.now());
      return { state, writes: [clearChatShares(state.key), told], after, reply: undefined };
    });
  }

  #tellReaders(): void {
    this.parts.topics.publish("access_changed", this.id, {});
  }

  /** What somebody has made of the chat's history; `stale` when history, or for a title the title, has changed since. */
  describe({ patch, title, history_version }: Description): Promise<Late> {
    return this.handle<Late>((state) => {
      const isLate = patch.title === undefined ? state.history_version !== history_version : state.title !== title;
      if (isLate) return { state, reply: "stale" };
      const next = { ...state, ...patch };
      const after = () => tellChanges(this.parts.topics, state, next);
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
      reply: { picture: pictureOf(state), buffer: this.parts.generations.buffer(this.id) ?? null },
    }));
  }

  /** After a start: what is owed goes on. */
  resume(_: Record<string, never>): Promise<void> {
    return this.handle((state) => ({ state, after: () => resume(this.parts.generations, state), reply: undefined }));
  }

  /** A turn is about to call the model. */
  beginAttempt({ history_version }: { readonly history_version: number }): Promise<StartedAttempt | "stale"> {
    return this.handle<StartedAttempt | "stale">(async (state) => {
      const { calls, refused, asked } = permittedCalls(state, callsToRun(state));
      // Permissions that are awaited, or the client's calls of a step that a crash has cut off from its end.
      const owesResults = state.pending_calls.length > 0 && calls.length === 0;
      const decided = await this.decideLate(
        state,
        owesResults
          ? { type: "enter_requires_action", history_version, asked }
          : { type: "record_attempt", history_version },
      );
      if (decided === "stale") return { state, reply: "stale" };
      const next = decided.state;
      const id = next.last_model_config_id;
      // One that cannot be used is asked all the same: its refusal says why, and nobody else sees the history (rule MO-34).
      const model: ModelInfo = chatModel(this.parts.models, id) ?? { id, provider: "", display_name: "" };
      const reply = {
        fence: { history_version: next.history_version, generation_attempt: next.generation_attempt },
        chat_key: next.key,
        model_id: model.id,
        ...{ provider: model.provider, provider_name: model.provider_name ?? "" },
        reasoning_effort: next.last_reasoning_effort,
        context_limit: model.context_limit ?? 0,
        compression_threshold: model.compression_threshold ?? null,
        provider_tools: offersProviderTools(next),
        tools: offeredTools(next),
        ...{ calls, refused },
        awaits_client: state.pending_calls.length > calls.length,
        about: aboutOf(next),
        family: { parent_chat_id: next.parent_chat_id, root_chat_id: next.root_chat_id },
        mcp_server_ids: next.mcp_server_ids,
      };
      const outcome = this.outcome<StartedAttempt | "stale">(state, decided, owesResults ? "stale" : reply);
      // A workspace that came up after the chat was made has something to tell by now.
      const isFirst = next.workspace_id !== null && next.generation_attempt === 1;
      const pin = isFirst ? [pinContextOnce(next.key, next.workspace_id ?? "", this.parts.clock.now())] : [];
      return { ...outcome, writes: [...(outcome.writes ?? []), ...pin] };
    });
  }

  /** The model call failed and will be tried again. */
  recordRetry(args: Pick<Extract<Command, { type: "record_retry" }>, "fence" | "retry">): Promise<Late> {
    return this.report({ type: "record_retry", ...args });
  }

  /** The model call failed for good; what it had said is kept. */
  reportFailure(args: Pick<Extract<Command, { type: "finish_error" }>, "fence" | "error" | "messages">): Promise<Late> {
    return this.report({ type: "finish_error", ...args });
  }

  /** The model has ended a step: its messages and what follows from them are one commit. */
  reportStep(reported: Step): Promise<Reported | "stale"> {
    const { fence, messages, then } = reported;
    return this.handle<Reported | "stale">(async (state) => {
      const step = await this.decideLate(state, { type: "commit_step", fence, messages });
      if (step === "stale") return { state, reply: "stale" };
      const { history_version, generation_attempt } = step.state;
      if (then === "fail") {
        const now = { history_version, generation_attempt };
        const failed = await this.decideLate(step.state, { type: "finish_error", fence: now, error: reported.error });
        const both = failed === "stale" ? step : joined(step, failed);
        return this.outcome<Reported | "stale">(state, both, { history_version, goes_on: false });
      }
      const { calls, asked } = permittedCalls(step.state, callsToRun(step.state));
      // What may not run is answered by the turn before anybody else is asked for anything (rule PE-10).
      const goes_on = then === "continue" || (then === "act" && calls.length > 0);
      const act = { type: "enter_requires_action", history_version, asked } as const;
      const wish = then === "act" ? act : ({ type: "finish_turn", history_version } as const);
      const end = goes_on ? undefined : await this.decideLate(step.state, wish);
      const change = end && end !== "stale" ? joined(step, end) : step;
      return this.outcome<Reported | "stale">(state, change, { history_version, goes_on });
    });
  }

  /** The turn was stopped: this is what it has said. */
  finishInterruption(args: Omit<Extract<Wish, { type: "finish_interruption" }>, "type">): Promise<Late> {
    return this.report({ type: "finish_interruption", ...args });
  }
}
