// Generates titles and summaries outside of turns: a title after the first message, a label after each turn, a summary every few turns.
// Drops late or unusable results. Chats never wait for them (rules TT-1 to TT-5).

import type { Clock } from "#base/clock.ts";
import { toErrorKind } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findChat } from "#db/chats/chats.ts";
import { listNewestMessages } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import { type LanguageModels, ModelError, type ModelInfo } from "#src/llm/model.ts";
import type { MessageSender } from "../../runtime/directory.ts";
import type { Service } from "../../runtime/service.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { DescribedMessages } from "../messages.ts";
import { resolveOrganizationModel } from "./organization-model.ts";
import type { Recorder } from "./recorder.ts";
import { askSideModel, type SidePurpose } from "./side-model.ts";
import {
  formatLabel,
  formatTranscript,
  parseLabel,
  parseTitle,
  STOPPED,
  summaryFrom,
  toFallbackTitle,
} from "./title-text.ts";

const TITLE = "Give this conversation a title of two to eight words. Answer with the title alone, without quotes.";
const LABEL =
  "Say in two to five words what the last answer came to, such as: fixed the flaky test. Answer with these words alone.";
const LABEL_INTERRUPTED =
  "The last turn was interrupted before its end. Say in two to five words what had been done until then, such as: read the failing tests. Answer with these words alone.";
const SUMMARY = "Sum up this conversation in one to three sentences. Answer with the summary alone.";
/** Maximum chats processed concurrently. Beyond that, a turn gets no new title or label. */
const MAX_CONCURRENT = 16;
/** Minimum length of a transcript, in characters, for a summary. */
const MIN_SUMMARY_CHARS = 200;
const SUMMARY_INTERVAL_TURNS = 3;
const MAX_MESSAGES = 200;
/** Maximum number of user messages for which a title is generated. After that, a chat keeps its current title. */
const MAX_TITLE_PROMPTS = 5;

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly models: LanguageModels;
  readonly chats: () => MessageSender<DescribedMessages>;
  readonly recorder?: Recorder | undefined;
  /** If false, models are only asked when someone requests a title. */
  readonly asks: boolean;
};
type EndedChat = Pick<
  ChatState,
  "id" | "key" | "status" | "title" | "parent_chat_id" | "history_version" | "owner_id" | "part"
> &
  Pick<ChatState, "last_model_config_id" | "organization_id">;

export class Titles implements Service {
  readonly #deps: Deps;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** Chats whose titles are being generated. */
  readonly #titling = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Handles a new message of a person in the history: generates a title, if needed, while the turn runs. */
  promptAdded(chat: EndedChat): void {
    this.#begin(chat, async (model) => {
      const messages = await loadNewest(this.#deps.store, chat.key);
      await this.#generateTitleOnce(chat, model, messages);
    });
  }

  /** Handles the end of a turn. Does nothing without a side model. */
  turnEnded(chat: EndedChat, isInterrupted: boolean): void {
    this.#begin(chat, (model) => this.#updateChat(chat, model, isInterrupted));
  }

  #begin(chat: EndedChat, work: (model: ModelInfo) => Promise<void>): void {
    const { asks, models } = this.#deps;
    const model = asks ? models.resolveSideModel?.(chat.last_model_config_id) : undefined;
    if (!model || this.#stopping.signal.aborted || this.#running.size >= MAX_CONCURRENT) return;
    const job = work(model)
      .catch((error) => {
        if (this.#stopping.signal.aborted || toErrorKind(error) === "not_found") return;
        log("chats").warn("cannot generate a title or summary for chat {chat_id}: {error}", {
          chat_id: chat.id,
          error,
        });
      })
      .finally(() => this.#running.delete(job));
    this.#running.add(job);
  }

  /** Returns a title for the conversation so far, without storing it. Falls back to the first words when no model is available. */
  async propose(
    chat: Pick<ChatState, "key" | "owner_id" | "part" | "organization_id" | "last_model_config_id">,
    signal: AbortSignal,
  ): Promise<string> {
    const { store, models } = this.#deps;
    const messages = await loadNewest(store, chat.key);
    const opening = toFallbackTitle(messages.find(({ role }) => role === "user")?.content ?? []);
    const wanted = await resolveOrganizationModel(this.#deps, chat.organization_id, "title_generation");
    const model = wanted && wanted !== "unusable" ? wanted.model : models.resolveSideModel?.(chat.last_model_config_id);
    if (!model) return opening;
    const requested = { system: TITLE, text: formatTranscript(messages) };
    const answer = await askSideModel(this.#deps, toSidePurpose(chat, model, "title_generation"), requested, signal);
    return parseTitle(answer) ?? opening;
  }

  async whenIdle(): Promise<void> {
    await Promise.all(this.#running);
  }

  stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    return this.whenIdle();
  }

  async #updateChat(chat: EndedChat, model: ModelInfo, isInterrupted: boolean): Promise<void> {
    const messages = await loadNewest(this.#deps.store, chat.key);
    const prompts = messages.filter(({ role }) => role === "user");
    const text = formatTranscript(messages);
    await this.#generateTitleOnce(chat, model, messages);
    const requested = isInterrupted ? LABEL_INTERRUPTED : LABEL;
    const fallback = isInterrupted ? STOPPED : formatLabel(chat.status);
    await this.#generateField(chat, "last_turn_summary", parseLabel, model, requested, text, fallback);
    const isDue = chat.parent_chat_id === null && (prompts.length - 1) % SUMMARY_INTERVAL_TURNS === 0;
    if (isDue && chat.status === "waiting" && text.length >= MIN_SUMMARY_CHARS) {
      await this.#generateField(chat, "summary", summaryFrom, model, SUMMARY, text);
    }
  }

  /** Generates a title unless the chat has one, or one is being generated. */
  async #generateTitleOnce(
    { id, ...chat }: EndedChat,
    model: ModelInfo,
    messages: Awaited<ReturnType<typeof loadNewest>>,
  ) {
    const prompts = messages.filter(({ role }) => role === "user");
    if (prompts.length === 0 || prompts.length > MAX_TITLE_PROMPTS || this.#titling.has(id)) return;
    this.#titling.add(id);
    try {
      // The chat may have got a title since the turn began.
      const title = (await this.#deps.store.get(findChat({ id })))?.title ?? chat.title;
      if (title !== "" && title !== toFallbackTitle(prompts[0]?.content ?? [])) return;
      await this.#generateTitle({ id, ...chat, title }, model, formatTranscript(messages));
    } finally {
      this.#titling.delete(id);
    }
  }

  /** Uses the organization's title model if one is configured. When that fails, the chat gets no title. */
  async #generateTitle(chat: EndedChat, model: ModelInfo, text: string): Promise<void> {
    const wanted = await resolveOrganizationModel(this.#deps, chat.organization_id, "title_generation");
    if (wanted === "unusable") return;
    await this.#generateField(chat, "title", parseTitle, wanted?.model ?? model, TITLE, text);
  }

  async #generateField(
    chat: EndedChat,
    field: "title" | "summary" | "last_turn_summary",
    parse: (answer: string) => string | undefined,
    model: ModelInfo,
    system: string,
    text: string,
    fallback?: string,
  ): Promise<void> {
    const purpose = toSidePurpose(chat, model, field === "title" ? "title_generation" : "quickgen");
    const answer = await askSideModel(this.#deps, purpose, { system, text }, this.#stopping.signal).catch((error) => {
      if (error instanceof ModelError) return "";
      throw error;
    });
    const value = parse(answer) ?? fallback;
    if (value === undefined) return;
    const { id, title, history_version } = chat;
    await this.#deps.chats().ask(id, "describe", { patch: { [field]: value }, title, history_version });
  }
}

const toSidePurpose = (
  { key, part, owner_id }: Pick<ChatState, "key" | "part" | "owner_id">,
  { id, provider }: ModelInfo,
  kind: SidePurpose["kind"],
): SidePurpose => ({ kind, chat_key: key, part, model_id: id, provider, chat: { owner_id } });

const loadNewest = async (store: Store, chat: number) => {
  const page = { chat, after: 0, before: Number.MAX_SAFE_INTEGER, limit: MAX_MESSAGES };
  return (await store.scan(listNewestMessages(page))).reverse();
};
