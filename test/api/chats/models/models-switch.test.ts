// A chat with tool calls that switches from every kind of model server to every other. Each server rejects the requests that the real one
// is documented to reject (test/support/models/receiver-rules.ts).
import { expect, test } from "bun:test";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { DIALECTS } from "#test/support/models/model-dialects.ts";
import { findProtocol } from "#test/support/models/model-frames.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { RECEIVERS } from "#test/support/models/receiver-rules.ts";
import { scaleTimeout } from "#test/support/pace.ts";

/** Rejections that Slipway learns from. Each model may send one. */
const LEARNABLE_REJECTION = /reasoning_content/;

type Server = { readonly kind: ProviderKind; readonly model: string; readonly base?: string };
const MODEL_NAMES: Readonly<Record<string, string>> = { mistral: "devstral-medium", kimi: "kimi-k2" };
const SERVERS: readonly Server[] = [
  { kind: "anthropic", model: "claude-x" },
  { kind: "openai", model: "gpt-5" },
  { kind: "openai", model: "gpt-4.1", base: "/openai/v1" },
  { kind: "google", model: "gemini-3-pro" },
  ...DIALECTS.map((name): Server => ({ kind: "openai-compat", model: MODEL_NAMES[name] ?? name, base: `/${name}/v1` })),
];

/** Returns a call ID in the form that the models of the server create. */
const toCallId = (call: ModelCall, count: number): string => {
  const digits = String(count).padStart(4, "0");
  switch (findProtocol(call.path)) {
    case "anthropic":
      return `toolu_01${digits}`;
    case "mistral":
      return `abcde${digits}`;
    // Some of its servers count from 0 in every answer.
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
const toSwitchPath = (count: number): number[] => {
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
      const options = base === "/openai/v1" ? { model_config: { provider_options: { use_responses_api: false } } } : {};
      const created = await addModel(world, kind, { model, ...options }, `${kind} ${model}`, base);
      ids.push(created.model.id);
    }
    let callCount = 0;
    let remainingCalls = 40;
    const answering = world.upstream.answerAll((call) => {
      if (!("tools" in call.body)) return void call.say({ text: "A title" }, { finish: "stop" }).end();
      if (remainingCalls === 0) return void call.say({ reasoning: "so" }, { text: "Done." }, { finish: "stop" }).end();
      call.say({ reasoning: "I look" });
      for (; remainingCalls > 0; remainingCalls -= 1) {
        call.say({ call: { id: toCallId(call, ++callCount), name: "list_templates", args: "{}" } });
      }
      call.say({ finish: "tool_calls" }).end();
    });
    const path = toSwitchPath(SERVERS.length);
    const pairs = new Set(path.slice(1).map((to, index) => `${path[index]} ${to}`));
    expect(pairs.size).toBe(SERVERS.length * (SERVERS.length - 1));
    expect(SERVERS).toHaveLength(Object.keys(RECEIVERS).length);
    const { id } = await createChat(world, "look", { model_config_id: ids[path[0] as number] });
    using follower = await Follower.open(world.owner, id);
    const waitForTurns = (count: number) =>
      follower.until(({ events }) => {
        const doneCount = events.filter((event) => event.type === "status" && event.status.status === "waiting").length;
        if (events.some(({ type }) => type === "error")) throw new Error(JSON.stringify(events.at(-1)));
        return doneCount >= count;
      });
    await waitForTurns(1);
    for (const [index, server] of path.slice(1).entries()) {
      remainingCalls = 1;
      await sendMessage(world, id, `to ${SERVERS[server]?.model}`, { model_config_id: ids[server] });
      await waitForTurns(index + 2);
    }
    const refusals = world.upstream.refused.map((call) => JSON.stringify(call.refusal));
    expect(refusals.filter((refusal) => !LEARNABLE_REJECTION.test(refusal))).toEqual([]);
    expect(refusals.length).toBeLessThanOrEqual(SERVERS.length);
    expect(callCount).toBe(40 + path.length - 1);
    await world.upstream[Symbol.asyncDispose]();
    void answering;
  },
  scaleTimeout(240_000),
);
