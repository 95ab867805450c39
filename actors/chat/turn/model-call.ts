// Makes one model call of a turn: builds the prompt, and collects the answer for the history and for followers. Used by turn.ts.
import { Slices } from "#base/retry.ts";
import { findCustomPrompt } from "#db/chats/messages.ts";
import { type CallSettings, readCallSettings } from "#db/chats/settings.ts";
import { ModelError, type PromptMessage, type RequestMemory } from "#src/llm/model.ts";
import { repairCall } from "#src/llm/repair-arguments.ts";
import type { RecordEnd, Recording } from "../background/recorder.ts";
import type { StartedAttempt } from "../messages.ts";
import { assemblePrompt } from "../prompt/prompt.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { CallIds, isCallEvent, type UsedCallIds } from "./call-ids.ts";
import type { Collector } from "./collector.ts";
import type { TurnDeps } from "./deps.ts";
import { findProblem } from "./ending.ts";
import type { McpOffer } from "./mcp.ts";
import { withServer } from "./mcp-turn.ts";
import type { StreamBuffer } from "./stream-buffer.ts";
import { untilAborted, watchSilence } from "./watch.ts";

type Deps = Pick<TurnDeps, "blocks" | "clock" | "hooks" | "models" | "store" | "warnings">;
type CallScope = Pick<StartedAttempt, "chat_key" | "chat"> & { readonly chat_id: string };

type Call = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly history: readonly PromptMessage[];
  readonly memory: RequestMemory | undefined;
  readonly mcp: McpOffer;
  readonly usedIds: UsedCallIds;
  /** Collects the answer for the history. */
  readonly collector: Collector;
  /** Gets the answer for followers. Closed at the end of the call. */
  readonly buffer: StreamBuffer;
  readonly recording: Recording | undefined;
};

/** Returns undefined when the call succeeded, otherwise why it failed. The call fails when `stop` aborts or the model is silent for too long. */
export const callModel = async (
  deps: Deps,
  { chat_id, attempt, history, memory, mcp, usedIds, collector, buffer, recording }: Call,
  stop: AbortSignal,
): Promise<unknown> => {
  const { clock, models } = deps;
  let warnings: readonly string[] = [];
  const silence = new AbortController();
  const signal = AbortSignal.any([stop, silence.signal]);
  const watch = watchSilence(clock, () => silence.abort(SILENCE_ERROR));
  let recordEnd: RecordEnd | undefined;
  let callIds: CallIds | undefined;
  const endCall = (failure: unknown): unknown => {
    if (failure !== undefined) usedIds.forget();
    recordEnd?.({ collector, failure, isStopped: stop.aborted });
    return failure;
  };
  try {
    const { messages, settings } = await buildPrompt(deps, { ...attempt, chat_id }, history, signal);
    const { model_id, reasoning_effort, tools, provider_tools } = attempt;
    const request = {
      payer: { user_id: attempt.chat.owner_id, chat_key: attempt.chat_key, kind: "chat_turn" as const },
      model_id,
      messages,
      tools,
      provider_tools,
      reasoning_effort,
      memory,
      attempt: attempt.fence.generation_attempt,
      signal,
    };
    recordEnd = await recording?.call({ ...attempt, settings }, request);
    const slices = new Slices(clock);
    for await (const event of untilAborted(models.stream(request)[Symbol.asyncIterator](), signal)) {
      watch.heard();
      // Events that have arrived follow each other without a turn of the event loop.
      await slices.next();
      if (event.type === "warnings") {
        warnings = event.warnings;
        setToolWarnings(deps, chat_id, warnings);
      }
      if (isCallEvent(event)) callIds ??= new CallIds(await readUsedIds(deps, attempt, usedIds, signal));
      const renamed = isCallEvent(event) && callIds ? callIds.rename(event) : event;
      for (const part of collector.add(repairCall(renamed, tools), clock.now())) buffer.push(withServer(part, mcp));
    }
    setToolWarnings(deps, chat_id, warnings);
    return endCall(findProblem(collector.content(clock.now()), collector.finish));
  } catch (error) {
    return endCall(silence.signal.aborted ? SILENCE_ERROR : error);
  } finally {
    watch.cancel();
    buffer.close();
  }
};

/** Throws the reason of `signal`. */
const readUsedIds = async (
  { clock, store }: Deps,
  { chat_key }: StartedAttempt,
  usedIds: UsedCallIds,
  signal: AbortSignal,
): Promise<Set<string>> => {
  const used = await retryUntilAnswered(clock, signal, () => usedIds.read(store, chat_key));
  if (used === "stale") throw signal.reason;
  return used;
};

/** Replaces the chat's warnings about tools that the model's provider rejects. */
const setToolWarnings = ({ warnings }: Deps, chat_id: string, texts: readonly string[]): void => {
  const previous = warnings.from("tools", chat_id);
  if (texts.join("\n") !== previous.join("\n")) warnings.set("tools", chat_id, texts);
};

const SILENCE_ERROR = new ModelError("stream_silence_timeout", "The provider sent nothing for too long.");

/** Returns the model's prompt: the current prompt blocks, then the history. Throws the reason of `signal`. */
const buildPrompt = async (
  deps: Deps,
  { chat_key, chat, chat_id }: CallScope,
  history: readonly PromptMessage[],
  signal: AbortSignal,
): Promise<{ readonly messages: readonly PromptMessage[]; readonly settings: CallSettings }> => {
  const readBlocks = async () => {
    const custom_prompt = await readCustomPrompt(deps, chat_key);
    const settings = readCallSettings(deps.store, chat.owner_id);
    const promptInput = { ...chat, chat_id, chat_key, custom_prompt, settings };
    const blocks = await Promise.all(deps.blocks.map((block) => block(promptInput)));
    return { settings: await settings, blocks: blocks.flat() };
  };
  const result = await retryUntilAnswered(deps.clock, signal, readBlocks);
  if (result === "stale") throw signal.reason;
  // Skips the empty row with which a cleared history begins.
  const rows = history.filter(({ content }) => content.length > 0).map(({ role, content }) => ({ role, content }));
  return { messages: assemblePrompt(result.blocks, rows), settings: result.settings };
};

/** Returns the owner's custom prompt that hooks have allowed. Undefined if hooks are not enforced, so that the current prompt applies. */
export const readCustomPrompt = async (
  { store, hooks }: Pick<Deps, "store" | "hooks">,
  chat_key: number,
): Promise<string | undefined> =>
  hooks.mode === "enforce" ? ((await store.get(findCustomPrompt({ chat: chat_key })))?.custom_prompt ?? "") : undefined;
