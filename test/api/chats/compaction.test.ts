// Long histories through the public API, with a provider on a real socket that reports how full its context is.
import { expect, test } from "bun:test";
import type { ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { ChatRun } from "#schema/chats/chat-debug.ts";
import { createChat, Follower, formatMessage, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { until } from "#test/support/until.ts";
import { isSummary, messagesIn, rolesIn, toRequestText } from "./model-requests.ts";

const SHORT_CONTEXT = { context_limit: 1_000, compression_threshold: 50 };

const finish = (call: ModelCall, text: string, input: number): void =>
  call.say({ text }, { finish: "stop", usage: { input, output: 5 } }).end();

test("[CM-1] [CM-2] [CM-4] [CM-5] [CM-7] a history is compacted for the model and stays complete for people, through edits, failures and refusals", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world, "openai-compat", SHORT_CONTEXT);
  const chat = await createChat(world, "Never touch the file secret.txt.");
  const path = `/api/v2/chats/${chat.id}`;
  using follower = await Follower.open(world.owner, chat.id);
  const awaitIdle = (length: number) =>
    follower.until((one) => one.status === "waiting" && one.history.length === length);
  const nextCall = () => world.upstream.next();
  finish(await nextCall(), "first answer", 100);
  await awaitIdle(2);
  await sendMessage(world, chat.id, "second");
  finish(await nextCall(), "second answer", 600);
  await awaitIdle(4);
  await sendMessage(world, chat.id, "third question");

  const requested = await nextCall();
  expect(isSummary(requested)).toBe(true);
  expect(toRequestText(requested)).toContain("first answer");
  expect(toRequestText(requested)).not.toContain("third question");
  await follower.until(({ events }) =>
    events.some((one) => one.type === "message_part" && one.message_part.part.tool_name === "chat_summarized"),
  );
  finish(requested, "SUMMARY ONE", 50);
  const shortened = await nextCall();
  // Consecutive user messages are merged in a request.
  expect(rolesIn(shortened)).toBe("system user");
  const [, both] = messagesIn(shortened);
  expect(both?.content).toMatch(/SUMMARY ONE[\s\S]*Never touch the file secret\.txt\.[\s\S]*third question$/);
  finish(shortened, "third answer", 80);
  await awaitIdle(8);

  const listMessages = async (): Promise<ChatMessage[]> =>
    (await world.owner.get<MessagePage>(`${path}/messages?limit=200`)).messages.reverse();
  const messages = await listMessages();
  expect(messages.map(formatMessage)).toEqual([
    "user: Never touch the file secret.txt.",
    ...["assistant: first answer", "user: second", "assistant: second answer", "user: third question"],
    ...["assistant: tool-call", "tool: tool-result", "assistant: third answer"],
  ]);
  expect(follower.history).toEqual(messages.map(formatMessage));
  expect(messages[6]?.content).toMatchObject([
    {
      tool_name: "chat_summarized",
      result: {
        summary: "SUMMARY ONE",
        source: "automatic",
        threshold_percent: 50,
        usage_percent: 60,
        context_tokens: 600,
      },
    },
  ]);
  expect(JSON.stringify(messages)).not.toContain("replaces the conversation");
  const page = await world.owner.get<MessagePage>(`${path}/messages?limit=3&before_id=${messages[7]?.id}`);
  expect(page.messages.map(({ id }) => id)).toEqual([6, 5, 4].map((index) => messages[index]?.id as number));
  const countFound = async (words: string) =>
    (await world.owner.get<unknown[]>(`/api/v2/chats?q=${encodeURIComponent(`search:"${words}"`)}`)).length;
  expect([await countFound("secret.txt"), await countFound("replaces the conversation")]).toEqual([1, 0]);

  // Editing an earlier message restores the history; its summary fails, and the turn continues without one.
  await world.owner.patch(`${path}/messages/${messages[4]?.id}`, {
    content: [{ type: "text", text: "third, edited" }],
  });
  const summaryCall = await nextCall();
  expect(isSummary(summaryCall)).toBe(true);
  summaryCall.answer(400, { error: { message: "no", type: "some_error" } });
  const fullCall = await nextCall();
  expect(rolesIn(fullCall)).toBe("system user assistant user assistant user");
  finish(fullCall, "fourth answer", 700);
  await awaitIdle(6);

  // The owner's own threshold applies; a "too long" error still triggers one compaction.
  const ownThreshold = `/api/v2/chats/config/user-compaction-thresholds/${model.id}`;
  await world.owner.put(ownThreshold, { threshold_percent: 99 });
  await sendMessage(world, chat.id, "fifth");
  const refused = await nextCall();
  expect(isSummary(refused)).toBe(false);
  const tooLong = { error: { message: "This model's maximum context length is 1000 tokens", type: "some_error" } };
  refused.answer(400, tooLong);
  finish(await nextCall(), "SUMMARY TWO", 50);
  const retried = await nextCall();
  expect(rolesIn(retried)).toBe("system user");
  expect(toRequestText(retried)).toContain("SUMMARY TWO");
  retried.answer(400, tooLong);
  await follower.until(({ events }) => events.some(({ type }) => type === "error"));
  expect(world.upstream.calls.filter(isSummary)).toHaveLength(3);

  await world.owner.put(ownThreshold, { threshold_percent: 100 });
  await sendMessage(world, chat.id, "sixth");
  const last = await nextCall();
  expect(isSummary(last)).toBe(false);
  last.answer(400, tooLong);
  await follower.until(({ events }) => events.filter(({ type }) => type === "error").length === 2);
  expect(world.upstream.calls.filter(isSummary)).toHaveLength(3);
});

test("[CM-6] [RM-9] between the steps of one turn a history is compacted at most three times", async () => {
  await using world = await openModelWorld({ env: { SLIPWAY_CHAT_DEBUG_LOGGING: "true" } });
  await addModel(world, "openai-compat", SHORT_CONTEXT);
  const chat = await createChat(world, "work");
  using follower = await Follower.open(world.owner, chat.id);
  let steps = 0;
  const step = (call: ModelCall, input: number): void => {
    const name = { id: `call_${++steps}`, name: "conjure", args: "{}" };
    call.say({ call: name }, { finish: "tool_calls", usage: { input, output: 5 } }).end();
  };
  step(await world.upstream.next(), 600);
  for (const round of [1, 2, 3]) {
    const requested = await world.upstream.next();
    expect([round, isSummary(requested)]).toEqual([round, true]);
    finish(requested, `SUMMARY ${round}`, 10);
    const call = await world.upstream.next();
    expect(rolesIn(call)).toBe("system user");
    expect(toRequestText(call)).toContain(`SUMMARY ${round}`);
    step(call, 100);
    step(await world.upstream.next(), 800);
  }
  const call = await world.upstream.next();
  expect(isSummary(call)).toBe(false);
  finish(call, "done", 900);
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history.at(-1)).toBe("assistant: done");
  const listRuns = () => world.owner.get<ChatRun[]>(`/api/v2/chats/${chat.id}/debug/runs`);
  await until(async () => (await listRuns()).filter(({ status }) => status === "completed").length >= 4);
  expect((await listRuns()).filter(({ kind }) => kind === "compaction")).toHaveLength(3);
});
