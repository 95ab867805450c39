// One chat that switches from every kind of model server to every other, with tool calls throughout. Each server rejects what the real one
// documents as rejected (test/support/models/receiver-rules.ts).
import { expect, test } from "bun:test";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { DIALECTS } from "#test/support/models/model-dialects.ts";
import { findProtocol } from "#test/support/models/model-frames.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { RECEIVERS } from "#test/support/models/receiver-rules.ts";
import { scaleTimeout } from "#test/support/pace.ts";

/** Rejections that Slipway learns from. Each model may cause one. */
const LEARNED = /reasoning_content/;

type Server = { readonly kind: ProviderKind; readonly model: string; readonly base?: string };
const NAMES: Readonly<Record<string, string>> = { mistral: "devstral-medium", kimi: "kimi-k2" };
const SERVERS: readonly Server[] = [
  { kind: "anthropic", model: "claude-x" },
  { kind: "openai", model: "gpt-5" },
  { kind: "openai", model: "gpt-4.1", base: "/openai/v1" },
  { kind: "google", model: "gemini-3-pro" },
  ...DIALECTS.map((name): Server => ({ kind: "openai-compat", model: NAMES[name] ?? name, base: `/${name}/v1` })),
];

/** Call IDs as each server's models create them. */
const toCallId = (call: ModelCall, count: number): string => {
  const digits = String(count).padStart(4, "0");
  switch (findProtocol(call.path)) {
    case "anthropic":
      return `toolu_01${digits}`;
    case "mistral":
      return `abcde${digits}`;
    // Starts at 0 in every answer, as some of its servers do.
    case "kimi":
      return "functions.list_templates:0";
    case "vllm":
      return `chatcmpl-tool-${"f".repeat(28)}${digits}`;
    case "qwen":
      return `call_${digits}|fc_${"0".repeat(50)}`;
    default:
      return `call_${digits}`;
  }
};

/** Returns a path that contains each ordered pair of different servers once. */
const walk = (count: number): number[] => {
  const remainingSwitches = Array.from({ length: count }, (_, from) =>
    Array.from({ length: count }, (_, to) => to).filter((to) => to !== from),
  );
  const path: number[] = [];
  const stack = [0];
  while (stack.length > 0) {
    const next = remainingSwitches[stack.at(-1) as number]?.pop();
    if (next === undefined) path.push(stack.pop() as number);
    else stack.push(next);
  }
  return path.reverse();
};

test(
  "[MO-63] a chat with 40 calls switches from every model to every other",
  async () => {
    await using world = await openModelWorld();
    const ids: string[] = [];
    for (const { kind, model, base } of SERVERS) {
      const more = base === "/openai/v1" ? { model_config: { provider_options: { use_responses_api: false } } } : {};
      const created = await addModel(world, kind, { model, ...more }, `${kind} ${model}`, base);
      ids.push(created.model.id);
    }
    let calls = 0;
    let wantedCount = 40;
    const answered = world.upstream.answerAll((call) => {
      if (!("tools" in call.body)) return void call.say({ text: "A title" }, { finish: "stop" }).end();
      if (wantedCount === 0) return void call.say({ reasoning: "so" }, { text: "Done." }, { finish: "stop" }).end();
      call.say({ reasoning: "I look" });
      for (; wantedCount > 0; wantedCount -= 1) {
        call.say({ call: { id: toCallId(call, ++calls), name: "list_templates", args: "{}" } });
      }
      call.say({ finish: "tool_calls" }).end();
    });
    const path = walk(SERVERS.length);
    const pairs = new Set(path.slice(1).map((to, at) => `${path[at]} ${to}`));
    expect(pairs.size).toBe(SERVERS.length * (SERVERS.length - 1));
    expect(SERVERS).toHaveLength(Object.keys(RECEIVERS).length);
    const { id } = await createChat(world, "look", { model_config_id: ids[path[0] as number] });
    using follower = await Follower.open(world.owner, id);
    const awaitTurns = (count: number) =>
      follower.until(({ events }) => {
        const doneCount = events.filter((one) => one.type === "status" && one.status.status === "waiting").length;
        if (events.some(({ type }) => type === "error")) throw new Error(JSON.stringify(events.at(-1)));
        return doneCount >= count;
      });
    await awaitTurns(1);
    for (const [at, server] of path.slice(1).entries()) {
      wantedCount = 1;
      await sendMessage(world, id, `to ${SERVERS[server]?.model}`, { model_config_id: ids[server] });
      await awaitTurns(at + 2);
    }
    const refusals = world.upstream.refused.map((call) => JSON.stringify(call.refusal));
    expect(refusals.filter((one) => !LEARNED.test(one))).toEqual([]);
    expect(refusals.length).toBeLessThanOrEqual(SERVERS.length);
    expect(calls).toBe(40 + path.length - 1);
    await world.upstream[Symbol.asyncDispose]();
    void answered;
  },
  scaleTimeout(240_000),
);
