// The pure parts of lifecycle hooks: strict JSON, positions, and the conversion of proposals and rows.
import { expect, test } from "bun:test";
import { moveBehindResults } from "#actors/chat/hooks/effects.ts";
import { toProposedInput } from "#actors/chat/hooks/proposals.ts";
import { loadConfig } from "#base/config.ts";
import { parseAnswer } from "#src/hooks/answer.ts";
import { Slots } from "#src/hooks/dispatch-slots.ts";
import { findMiscasedKey, findRepeatedKey } from "#src/hooks/strict-json.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

test("[HK-13] a repeated key is found at any depth and in any notation, but not within a text", () => {
  expect(findRepeatedKey('{"a":1,"b":{"a":1}}')).toBeUndefined();
  expect(findRepeatedKey('{"a":"\\"a\\":","b":["a","a",{"a":1},{"a":2}]}')).toBeUndefined();
  expect(findRepeatedKey('{"a":1,"a" : 2}')).toBe("a");
  expect(findRepeatedKey('{"a":1,"\\u0061":2}')).toBe("a");
  expect(findRepeatedKey('[{"x":[{"deep":1,"y":{},"deep":2}]}]')).toBe("deep");
  expect(findRepeatedKey(`{"a":1,"a"${" ".repeat(500)}:2}`)).toBe("a");
  const schema = { properties: { path: {}, files: { items: { properties: { name: {} } } } } };
  expect(findMiscasedKey(schema, { path: 1, other: 2, files: [{ name: 1 }] })).toBeUndefined();
  expect(findMiscasedKey(schema, { Path: 1 })).toBe("Path");
  expect(findMiscasedKey(schema, { files: [{ name: 1 }, { NAME: 1 }] })).toBe("NAME");
});

test("[HK-2] the hook gets the model's own bytes, or the repaired arguments if they were invalid", () => {
  const propose = (args: unknown, raw?: string) =>
    toProposedInput("list_templates", { properties: { query: {} } }, { args, raw });
  expect(propose({ query: "a" }, '{ "query":"a" }')).toEqual({ tool_input: '{ "query":"a" }' });
  expect(propose({ query: "a" }, '{"query":"a"')).toEqual({ tool_input: '{"query":"a"}' });
  expect(propose({}, "")).toEqual({ tool_input: "{}" });
  expect(propose({ query: "a" })).toEqual({ tool_input: '{"query":"a"}' });
  expect(propose({ input: '{"query":["' }, '{"query":["')).toEqual({
    refusal: expect.stringContaining("not valid JSON"),
  });
  expect(propose({ query: "b" }, '{"query":"a","query":"b"}')).toEqual({ refusal: expect.stringContaining("twice") });
  // For tools of MCP servers, a repeated key is sent once, with the value that the tool gets.
  expect(toProposedInput("theirs", {}, { args: { q: 2 }, raw: '{"q":1,"q":2}' })).toEqual({ tool_input: '{"q":2}' });
});

test("[HK-5] limits are exact, and a permission is accepted only for events that can be permitted", () => {
  const parse = (event: Parameters<typeof parseAnswer>[0], value: unknown) =>
    parseAnswer(event, new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value)));
  expect(parse("stop", "")).toEqual({});
  expect(parse("stop", { model_context: "x".repeat(16_384) }).model_context).toHaveLength(16_384);
  expect(() => parse("stop", { permission: { decision: "deny" } })).toThrow("nothing to permit");
  expect(() => parse("pre_tool_use", { permission: { decision: "allow" } })).toThrow("needs input_override");
  const input_override = { text: "x".repeat(262_144 - 11) };
  expect(parse("pre_tool_use", { permission: { decision: "allow", input_override } }).permission).toMatchObject({
    input_override,
  });
  // Values are counted before the answer is parsed, because two megabytes could hold a million of them.
  expect(() => parse("stop", `{"model_context":[${"0,".repeat(100_001)}0]}`)).toThrow("more than 100000 values");
  const longer = { text: `${input_override.text}x` };
  expect(() => parse("pre_tool_use", { permission: { decision: "allow", input_override: longer } })).toThrow(
    "too long",
  );
});

test("[HK-4] 256 dispatches run concurrently, 192 of them for prompts; others wait up to 250 ms, and are then refused", async () => {
  const clock = new ManualClock();
  const slots = new Slots(clock);
  const acquireSlots = async (count: number, pool: "prompt" | "turn") =>
    Promise.all(Array.from({ length: count }, () => slots.acquire(pool)));
  const prompts = await acquireSlots(192, "prompt");
  const waitingPrompt = slots.acquire("prompt");
  const turns = await acquireSlots(64, "turn");
  expect([...prompts, ...turns].every((release) => release !== undefined)).toBe(true);
  expect(slots.size).toBe(256);
  const waitingTurn = slots.acquire("turn");
  turns[0]?.();
  turns[0]?.();
  expect(await waitingTurn).toBeDefined();
  expect(slots.size).toBe(256);
  prompts[0]?.();
  expect(await waitingPrompt).toBeDefined();
  const timedOut = slots.acquire("turn");
  clock.advance(250);
  expect(await timedOut).toBeUndefined();
});

test("[HK-6] hook context between calls and results is moved after the results, and keeps its position elsewhere", () => {
  const row = (role: "user" | "assistant" | "tool", type: "text" | "hook-context", text: string) => ({
    role,
    content: [{ type, text }],
  });
  const history = [
    ...[row("user", "text", "1"), row("user", "hook-context", "2"), row("assistant", "text", "3")],
    ...[row("tool", "text", "4"), row("user", "hook-context", "6"), row("tool", "text", "5")],
    ...[row("user", "hook-context", "7"), row("user", "text", "8"), row("user", "hook-context", "9")],
  ];
  expect(moveBehindResults(history).map(({ content }) => content[0]?.text)).toEqual([
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
  ]);
});

test("[HK-17] a consumer must use https or be on this machine, and needs a sufficiently long secret", () => {
  const load = (env: Record<string, string>) => loadConfig({ argv: [], env, readFile: () => "" }).config;
  const secret = { SLIPWAY_HOOK_SECRET: "x".repeat(32) };
  for (const url of [
    "https://policy.example.com/a?b=c",
    "http://127.0.0.1:9/x",
    "http://[::1]:9/",
    "http://localhost/",
  ]) {
    expect(load({ ...secret, SLIPWAY_HOOK_URL: url }).hook_url).toBe(url);
  }
  for (const url of [
    "http://policy.example.com/",
    "http://127.0.0.1.example.com/",
    "https://u:p@x.com/",
    "https://x.com/#a",
    "file:///x",
  ]) {
    expect(() => load({ ...secret, SLIPWAY_HOOK_URL: url })).toThrow();
  }
  expect(() => load({ SLIPWAY_HOOK_URL: "https://policy.example.com/" })).toThrow("need hook_secret");
  expect(() => load({ SLIPWAY_HOOK_SECRET: "x".repeat(31) })).toThrow();
  expect(() => load({ ...secret, SLIPWAY_HOOK_TIMEOUT: "5001ms" })).toThrow();
  expect(() => load({ ...secret, SLIPWAY_HOOK_TIMEOUT: "0s" })).toThrow();
});
