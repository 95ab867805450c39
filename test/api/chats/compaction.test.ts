// Compaction of long histories through the public API, with a provider on a real socket that reports how full its context is.
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

test("[CM-1] [CM-2] [CM-4] [CM-5] [CM-7] compacts a history for the model and keeps it complete for people, after edits, failures and refusals", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world, "openai-compat", SHORT_CONTEXT);
  const chat = await createChat(world, "Never touch the file secret.txt.");
  const path = `/api/v2/chats/${chat.id}`;
  using follower = await Follower.open(world.owner, chat.id);
  const awaitIdle = (length: number) =>
    follower.until(({ status, history }) => status === "waiting" && history.length === length);
  const nextCall = () => world.upstream.next();
  finish(await nextCall(), "first answer", 100);
  await awaitIdle(2);
  await sendMessage(world, chat.id, "second");
  finish(await nextCall(), "second answer", 600);
  await awaitIdle(4);
  await sendMessage(world, chat.id, "third question");

  const firstSummary = await nextCall();
  expect(isSummary(firstSummary)).toBe(true);
  expect(toRequestText(firstSummary)).toContain("first answer");
  expect(toRequestText(firstSummary)).not.toContain("third question");
  await follower.until(({ events }) =>
    events.some((event) => event.type === "message_part" && event.message_part.part.tool_name === "chat_summarized"),
  );
  finish(firstSummary, "SUMMARY ONE", 50);
  const shortened = await nextCall();
  // Consecutive user messages are merged in a request.
  expect(rolesIn(shortened)).toBe("system user");
  const [, userMessage] = messagesIn(shortened);
  expect(userMessage?.content).toMatch(/SUMMARY ONE[\s\S]*Never touch the file secret\.txt\.[\s\S]*third question$/);
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
  const countMatches = async (words: string) =>
    (await world.owner.get<unknown[]>(`/api/v2/chats?q=${encodeURIComponent(`search:"${words}"`)}`)).length;
  expect([await countMatches("secret.txt"), await countMatches("replaces the conversation")]).toEqual([1, 0]);

  // Editing an earlier message restores the history; its summary fails, and the turn continues without one.
  await world.owner.patch(`${path}/messages/${messages[4]?.id}`, {
    content: [{ type: "text", text: "third, edited" }],
  });
  const failingSummary = await nextCall();
  expect(isSummary(failingSummary)).toBe(true);
  failingSummary.answer(400, { error: { message: "no", type: "some_error" } });
  const fullCall = await nextCall();
  expect(rolesIn(fullCall)).toBe("system user assistant user assistant user");
  finish(fullCall, "fourth answer", 700);
  await awaitIdle(6);

  // The owner's own threshold applies; a "too long" error still triggers one compaction.
  const ownThreshold = `/api/v2/chats/config/user-compaction-thresholds/${model.id}`;
  await world.owner.put(ownThreshold, { threshold_percent: 99 });
  await sendMessage(world, chat.id, "fifth");
  const refusedCall = await nextCall();
  expect(isSummary(refusedCall)).toBe(false);
  const tooLong = { error: { message: "This model's maximum context length is 1000 tokens", type: "some_error" } };
  refusedCall.answer(400, tooLong);
  finish(await nextCall(), "SUMMARY TWO", 50);
  const retryCall = await nextCall();
  expect(rolesIn(retryCall)).toBe("system user");
  expect(toRequestText(retryCall)).toContain("SUMMARY TWO");
  retryCall.answer(400, tooLong);
  await follower.until(({ events }) => events.some(({ type }) => type === "error"));
  expect(world.upstream.calls.filter(isSummary)).toHaveLength(3);

  await world.owner.put(ownThreshold, { threshold_percent: 100 });
  await sendMessage(world, chat.id, "sixth");
  const lastCall = await nextCall();
  expect(isSummary(lastCall)).toBe(false);
  lastCall.answer(400, tooLong);
  await follower.until(({ events }) => events.filter(({ type }) => type === "error").length === 2);
  expect(world.upstream.calls.filter(isSummary)).toHaveLength(3);
});

test("[CM-6] [RM-9] compacts a history between the steps of a turn, at most three times", async () => {
  await using world = await openModelWorld({ env: { SLIPWAY_CHAT_DEBUG_LOGGING: "true" } });
  await addModel(world, "openai-compat", SHORT_CONTEXT);
  const chat = await createChat(world, "work");
  using follower = await Follower.open(world.owner, chat.id);
  let stepCount = 0;
  const step = (call: ModelCall, input: number): void => {
    const toolCall = { id: `call_${++stepCount}`, name: "conjure", args: "{}" };
    call.say({ call: toolCall }, { finish: "tool_calls", usage: { input, output: 5 } }).end();
  };
  step(await world.upstream.next(), 600);
  for (const round of [1, 2, 3]) {
    const summary = await world.upstream.next();
    expect([round, isSummary(summary)]).toEqual([round, true]);
    finish(summary, `SUMMARY ${round}`, 10);
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
