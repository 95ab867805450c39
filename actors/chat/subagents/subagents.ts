// Sub-chats of a root chat as its tools use them (facts/chats 5.1 and 5.9): start, wait, message, stop and list. Each sub-chat has its
// own actor; waiting never blocks a mailbox. Rejects IDs of other chats' sub-chats.

import type { Clock } from "#base/clock.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { deriveUuid } from "#base/ids.ts";
import type { Topics } from "#base/topics.ts";
import { type ChatRow, findChat, listChildren } from "#db/chats/chats.ts";
import { listNewestMessages } from "#db/chats/messages.ts";
import { findAnswer } from "#db/chats/requests.ts";
import type { Store } from "#db/engine/store.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import { HookDenied, HookFailure } from "#src/hooks/protocol.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { ToolResult } from "#src/tools/result.ts";
import type { Live, SpawnInput, Subagents } from "#src/tools/subagents/agents.ts";
import { INTERRUPTED_REASON, ToolError } from "#src/tools/tool.ts";
import type { MessageSender } from "../../runtime/directory.ts";
import type { Events } from "../../runtime/events.ts";
import { toFallbackTitle } from "../background/title-text.ts";
import type { CheckedCommand } from "../hooks/hook-commands.ts";
import { type AdmittedPrompt, admitPrompt, type Prompt } from "../hooks/prompts.ts";
import type { PendingCall } from "../machine/decision.ts";
import type { ChatSnapshot, SendMessage, SendResult } from "../messages.ts";
import { MAX_SUBAGENTS, type SpawnResult, type SpawnSubagent } from "./create.ts";
import { chooseSubagentModel, listSubagentModels } from "./model.ts";
import { SubagentText } from "./text.ts";

/** A wait polls at this interval in addition to its subscriptions (facts/chats 5.1). */
const CHECK_INTERVAL_MS = 5_000;
/** Number of newest messages that are searched for the report. */
const MAX_NEWEST_MESSAGES = 200;
const MAX_TITLE_CHARS = 200;

/** Messages to a root chat and its sub-chats from the root's tools. */
export interface SubagentMessages {
  maySpawn(args: SpawnSubagent): Promise<SpawnResult>;
  spawn(args: SpawnSubagent): Promise<SpawnResult>;
  check(args: CheckedCommand): Promise<void>;
  send(args: SendMessage): Promise<SendResult>;
  snapshot(args: Record<string, never>): Promise<ChatSnapshot>;
  interrupt(args: Record<string, never>): Promise<void>;
}

export type SubagentDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly models: LanguageModels;
  readonly chats: () => MessageSender<SubagentMessages>;
  readonly hooks: Hooks;
};

/** The root chat and the call; `run_id` as in `ToolContext`. */
export type SubagentsOf = {
  readonly chat_id: string;
  readonly run_id: string;
  readonly call: Pick<PendingCall, "message_id" | "tool_call_id">;
  /** Called when a hook gave no valid decision, which ends the root's turn. */
  readonly failed?: (failure: HookFailure) => void;
};

export class ChatSubagents implements Subagents {
  readonly #deps: SubagentDeps;
  readonly #parent: SubagentsOf;

  constructor(deps: SubagentDeps, scope: SubagentsOf) {
    this.#deps = deps;
    this.#parent = scope;
  }

  async spawn(input: SpawnInput): Promise<ToolResult> {
    const { store, chats } = this.#deps;
    const { chat_id, run_id, call } = this.#parent;
    const id = deriveUuid(`subagent ${run_id}`);
    const created = await store.get(findChat({ id }));
    if (created) return { ...toSummary(created), type: created.subagent_type };
    const { type, prompt } = input;
    const root = await this.#loadRoot();
    const model = await chooseSubagentModel(this.#deps, root, input);
    const subagent = { id, call, type, title: formatTitle(input), ...model };
    const result = await chats().ask(chat_id, "maySpawn", { ...subagent, content: [] });
    if (result !== "done") throw new ToolError(REFUSALS[result]);
    const admitted = await this.#admit({ ...root, id, parent_chat_id: chat_id, root_chat_id: chat_id }, prompt);
    const spawned = await chats().ask(chat_id, "spawn", { ...subagent, ...admitted });
    if (spawned !== "done") throw new ToolError(REFUSALS[spawned]);
    return { ...toSummary(await this.#requireChild(id)), type };
  }

  async wait(chat_id: string, timeout_ms: number, output: Live, signal: AbortSignal): Promise<ToolResult> {
    const { store, clock, topics, chats } = this.#deps;
    const { id } = await this.#requireChild(chat_id);
    const deadline = clock.monotonic() + timeout_ms;
    const text = new SubagentText(output);
    let wake = () => {};
    // Subscribes before reading, so that no event is missed in between.
    const subscriptions = [
      topics.subscribe("chat", id, () => wake()),
      topics.subscribe("chat_parts", id, (batch) => text.add(batch)),
    ];
    try {
      const { buffer } = await chats().ask(id, "snapshot", {});
      if (buffer) text.add(buffer);
      for (;;) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const row = await store.get(findChat({ id }));
        signal.throwIfAborted();
        if (!row) throw new ToolError("The agent no longer exists.");
        if (!BUSY.has(row.status)) return await this.#report(row);
        const remainingMs = deadline - clock.monotonic();
        if (remainingMs <= 0) return { ...toSummary(row), timed_out: true };
        await this.#pause(woken, Math.min(remainingMs, CHECK_INTERVAL_MS), signal);
      }
    } catch (error) {
      // An interrupt of the turn also stops the sub-chat it waits for, like a command (rule SB-7). Background sub-chats continue.
      if (signal.reason === INTERRUPTED_REASON) await this.#stop(id).catch(() => {});
      throw error;
    } finally {
      for (const unsubscribe of subscriptions) unsubscribe();
    }
  }

  async message(chat_id: string, text: string, interrupt: boolean): Promise<ToolResult> {
    const { store, chats } = this.#deps;
    const child = await this.#requireChild(chat_id);
    const { id, owner_id, status, subagent_type } = child;
    const root = await this.#loadRoot();
    if (root.plan_mode !== null && subagent_type !== "explore") throw new ToolError(REFUSALS.planning);
    const request_key = { key: `tool ${this.#parent.run_id}`, digest: "" };
    const behavior = interrupt ? "interrupt" : "queue";
    if (!(await findAnswer(store, child.key, request_key))) {
      await chats().ask(id, "check", { type: "send", behavior });
      const admitted = await this.#admit(child, text);
      await chats().ask(id, "send", {
        ...admitted,
        created_by: owner_id,
        model_config_id: null,
        reasoning_effort: "",
        behavior,
        // Agents of earlier versions did not get the plan mode of the chat that started them.
        patch: root.plan_mode === null || child.plan_mode !== null ? {} : { plan_mode: root.plan_mode },
        request_key,
      });
    }
    const current = await this.#requireChild(id);
    return { chat_id: id, status: current.status, interrupted: interrupt && BUSY.has(status) };
  }

  async interrupt(chat_id: string): Promise<ToolResult> {
    const { id } = await this.#requireChild(chat_id);
    const interrupted = await this.#stop(id);
    return { chat_id: id, status: (await this.#requireChild(id)).status, interrupted };
  }

  async list(limit: number, offset: number): Promise<ToolResult> {
    const rows = await this.#deps.store.all(listChildren({ root: this.#parent.chat_id }));
    // Sorts by key, because many sub-chats can be created in the same millisecond.
    const all = rows.sort((a, b) => b.key - a.key);
    const page = all.slice(offset, offset + limit);
    return {
      agents: page.map((row) => ({
        ...toSummary(row),
        type: row.subagent_type,
        created_at: toRfc3339(row.created_at),
        ...(row.last_error ? { last_error: row.last_error.message } : {}),
      })),
      count: all.length,
      has_more: offset + page.length < all.length,
    };
  }

  async models(): Promise<ToolResult> {
    return { models: await listSubagentModels(this.#deps) };
  }

  /**
   * Asks the hook about a message to a sub-chat. Throws `ToolError` if the hook denies the message. Without a valid decision, the turn
   * also ends.
   */
  async #admit(chat: Prompt["chat"], text: string): Promise<AdmittedPrompt> {
    try {
      return await admitPrompt(this.#deps, { chat, content: [{ type: "text", text }] });
    } catch (error) {
      if (error instanceof HookDenied) throw new ToolError(error.message);
      if (!(error instanceof HookFailure)) throw error;
      this.#parent.failed?.(error);
      throw new ToolError("A lifecycle hook failed, so the message was not sent to the agent.");
    }
  }

  /** Returns false when there was nothing to stop. */
  async #stop(id: string): Promise<boolean> {
    try {
      await this.#deps.chats().ask(id, "interrupt", {});
      return true;
    } catch (error) {
      if (error instanceof AppError && error.kind === "conflict") return false;
      throw error;
    }
  }

  async #report(row: ChatRow): Promise<ToolResult> {
    const page = { chat: row.key, after: 0, before: Number.MAX_SAFE_INTEGER, limit: MAX_NEWEST_MESSAGES };
    const messages = await this.#deps.store.scan(listNewestMessages(page));
    const output = messages
      .filter(({ role }) => role === "assistant")
      .map(({ content }) => content.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("\n"));
    const report = output.find((text) => text.trim() !== "") ?? "";
    const { last_error } = row;
    const failed = last_error && { last_error: `${last_error.message} ${last_error.detail ?? ""}`.trim() };
    return { ...toSummary(row), report, ...failed };
  }

  async #requireChild(id: string): Promise<ChatRow> {
    const row = await this.#deps.store.get(findChat({ id: id.trim().toLowerCase() }));
    if (row?.parent_chat_id === this.#parent.chat_id) return row;
    throw new ToolError(
      "This chat has not started an agent with this chat_id. Use list_agents to see the ones it has.",
    );
  }

  async #loadRoot(): Promise<ChatRow> {
    const row = await this.#deps.store.get(findChat({ id: this.#parent.chat_id }));
    if (row) return row;
    throw new ToolError("The chat no longer exists.");
  }

  async #pause(woken: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const timer = this.#deps.clock.after(ms, end);
    signal.addEventListener("abort", end);
    await Promise.race([woken, ended]);
    timer.cancel();
    signal.removeEventListener("abort", end);
    signal.throwIfAborted();
  }
}

const BUSY: ReadonlySet<string> = new Set(["running", "interrupting", "requires_action"]);

const REFUSALS: Readonly<Record<Exclude<SpawnResult, "done">, string>> = {
  stale: "The turn that started the agent has ended.",
  full: `This chat has ${MAX_SUBAGENTS} agents, the maximum. Use message_agent to give one of them more work.`,
  planning: "In plan mode, only agents of the type explore can be used.",
};

const toSummary = ({ id, title, status }: ChatRow) => ({ chat_id: id, title, status });

const formatTitle = ({ title = "", prompt }: SpawnInput): string => {
  const ownTitle = [...title.replaceAll(/\s+/g, " ").trim()].slice(0, MAX_TITLE_CHARS).join("");
  return ownTitle === "" ? toFallbackTitle([{ type: "text", text: prompt }]) : ownTitle;
};
