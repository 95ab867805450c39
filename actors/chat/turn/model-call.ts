// One call of a turn's model: what it is given, and what it says, as the parts of a message and for those who follow. Used by turn.ts.
import { findCustomPrompt } from "#db/chats/messages.ts";
import { type CallSettings, readCallSettings } from "#db/chats/settings.ts";
import { mended } from "#src/llm/mend.ts";
import { ModelError, type PromptMessage } from "#src/llm/model.ts";
import type { EndOfCall, Recording } from "../background/recorder.ts";
import type { StartedAttempt } from "../messages.ts";
import { assemblePrompt } from "../prompt/prompt.ts";
import { untilAnswered } from "../until-answered.ts";
import type { Collector } from "./collector.ts";
import type { TurnDeps } from "./deps.ts";
import { findProblem } from "./ending.ts";
import type { McpOffer } from "./mcp.ts";
import { withServer } from "./mcp-turn.ts";
import type { StreamBuffer } from "./stream-buffer.ts";
import { untilAborted, watchSilence } from "./watch.ts";

type Deps = Pick<TurnDeps, "blocks" | "clock" | "hooks" | "models" | "store" | "warnings">;
type Of = Pick<StartedAttempt, "chat_key" | "about"> & { readonly chat_id: string };

type Call = {
  readonly chat_id: string;
  readonly begun: StartedAttempt;
  readonly history: readonly PromptMessage[];
  readonly mcp: McpOffer;
  /** Both grow while the model speaks. The buffer is closed at the end. */
  readonly collector: Collector;
  readonly buffer: StreamBuffer;
  readonly recording: Recording | undefined;
};

/** Undefined when the call came to its end, else why it failed. Ends when the turn is stopped, and when nothing comes for a long time. */
export const callModel = async (
  deps: Deps,
  { chat_id, begun, history, mcp, collector, buffer, recording }: Call,
  stop: AbortSignal,
): Promise<unknown> => {
  const { clock, models } = deps;
  let warnings: readonly string[] = [];
  const silence = new AbortController();
  const signal = AbortSignal.any([stop, silence.signal]);
  const watch = watchSilence(clock, () => silence.abort(SILENT));
  let ended: EndOfCall | undefined;
  const over = (failure: unknown): unknown => {
    ended?.({ collector, failure, isStopped: stop.aborted });
    return failure;
  };
  try {
    const { messages, settings } = await buildPrompt(deps, { ...begun, chat_id }, history, signal);
    const { model_id, reasoning_effort, tools, provider_tools } = begun;
    const attempt = begun.fence.generation_attempt;
    const payer = { user_id: begun.about.owner_id, chat_key: begun.chat_key, kind: "chat_turn" } as const;
    const request = { payer, model_id, messages, tools, provider_tools, reasoning_effort, attempt, signal };
    ended = await recording?.call({ ...begun, settings }, request);
    for await (const event of untilAborted(models.stream(request)[Symbol.asyncIterator](), signal)) {
      watch.heard();
      if (event.type === "warnings") {
        warnings = event.warnings;
        warnOfTools(deps, chat_id, warnings);
      }
      for (const part of collector.add(mended(event, tools), clock.now())) buffer.push(withServer(part, mcp));
    }
    warnOfTools(deps, chat_id, warnings);
    return over(findProblem(collector.content(clock.now()), collector.finish));
  } catch (error) {
    return over(silence.signal.aborted ? SILENT : error);
  } finally {
    watch.cancel();
    buffer.close();
  }
};

/** Tells the people of the chat which tools the last request could not offer. */
const warnOfTools = ({ warnings }: Deps, chat_id: string, texts: readonly string[]): void => {
  const known = warnings.from("tools", chat_id);
  if (texts.join("\n") !== known.join("\n")) warnings.set("tools", chat_id, texts);
};

const SILENT = new ModelError("stream_silence_timeout", "The provider sent nothing for too long.");

/** What the model is given: blocks that are reread for each call, and the history. Throws the reason of `signal`. */
const buildPrompt = async (
  deps: Deps,
  { chat_key, about, chat_id }: Of,
  history: readonly PromptMessage[],
  signal: AbortSignal,
): Promise<{ readonly messages: readonly PromptMessage[]; readonly settings: CallSettings }> => {
  const read = async () => {
    const custom_prompt = await customPrompt(deps, chat_key);
    const settings = readCallSettings(deps.store, about.owner_id);
    const of = { ...about, chat_id, chat_key, custom_prompt, settings };
    const blocks = await Promise.all(deps.blocks.map((block) => block(of)));
    return { settings: await settings, blocks: blocks.flat() };
  };
  const found = await untilAnswered(deps.clock, signal, read);
  if (found === "stale") throw signal.reason;
  const { settings, blocks } = found;
  const messages = assemblePrompt(
    blocks,
    // The row from which a cleared chat starts over is empty.
    history.filter(({ content }) => content.length > 0).map(({ role, content }) => ({ role, content })),
  );
  return { messages, settings };
};

/** What the owner asks of all chats, as hooks have seen it; undefined while none is enforced: then as it is now. */
export const customPrompt = async (
  { store, hooks }: Pick<Deps, "store" | "hooks">,
  chat: number,
): Promise<string | undefined> =>
  hooks.mode === "enforce" ? ((await store.get(findCustomPrompt({ chat })))?.custom_prompt ?? "") : undefined;
