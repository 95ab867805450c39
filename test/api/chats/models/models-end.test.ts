// Incomplete answers: the provider fails during a stream, is unreachable, limits requests, sends nothing, or reaches its output limit.
// Over a real socket, through the public API.
import { expect, test } from "bun:test";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower, loadHistory, sendMessage } from "#test/support/chats.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ModelServer } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";

const toErrorEvent = (message: string) => `data: ${JSON.stringify({ error: { message, type: "some_error" } })}\n\n`;

const TOOLS = [{ name: "lookup", description: "Looks up", input_schema: { type: "object", properties: {} } }];

const waitForError = async (follower: Follower) => {
  await follower.until(({ status }) => status === "error");
  const event = follower.events.findLast(({ type }) => type === "error");
  return event?.type === "error" ? event.error : undefined;
};

const waitForRetry = async (follower: Follower, attempt = 1) => {
  const findRetry = () =>
    follower.events
      .flatMap((event) => (event.type === "retry" ? [event.retry] : []))
      .find((retry) => retry.attempt === attempt);
  await follower.until(() => findRetry() !== undefined);
  return findRetry();
};

describeInProcess("an incomplete answer", () => {
  test("[MO-40] output before a permanent failure stays in the history, and the next turn includes it", async () => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "look it up");
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    call.say({ text: "I will look" }).sendRaw(toErrorEvent("quota used up")).end();
    expect(await waitForError(follower)).toMatchObject({
      kind: "usage_limit",
      message: "The quota at the model provider My openai-compat is used up.",
    });
    expect(await loadHistory(world.owner, chat.id)).toEqual(["user: look it up", "assistant: I will look"]);
    await sendMessage(world, chat.id, "again");
    const { body } = await world.upstream.next();
    const messages = JSON.stringify(body.messages);
    expect(messages).toContain("I will look");
  });

  test("[MO-13] skips an unreadable chunk in text, and requests the answer again if the chunk was part of a call", async () => {
    const clock = new ManualClock();
    await using world = await openModelWorld({ clock });
    await addModel(world);
    const chat = await createChat(world, "look it up", { unsafe_dynamic_tools: TOOLS });
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    const toToolChunk = (tool: object) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [tool] } }] })}\n\n`;
    call.sendRaw(
      toToolChunk({ index: 0, id: "c1", type: "function", function: { name: "lookup", arguments: '{"word":"t' } }),
    );
    call.sendRaw("data: {oops\n\n");
    call
      .sendRaw(toToolChunk({ index: 0, function: { arguments: 'ea"}' } }))
      .say({ finish: "tool_calls" })
      .end();
    expect(await waitForRetry(follower)).toMatchObject({
      kind: "timeout",
      error: expect.stringContaining("broke off"),
    });
    await clock.timerIn(1_000);
    clock.advance(1_000);
    const retryCall = await world.upstream.next();
    retryCall.say({ text: "Tea " }).sendRaw("data: {oops\n\n").say({ text: "it is." }, { finish: "stop" }).end();
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history).toEqual(["user: look it up", "assistant: Tea it is."]);
  });

  test("[MO-13] recognizes a server's own error format during a stream", async () => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    const output = { object: "error", message: "Your quota is used up", type: "BadRequestError", code: 400 };
    (await world.upstream.next())
      .say({ text: "Well" })
      .sendRaw(`data: ${JSON.stringify(output)}\n\n`)
      .end();
    expect(await waitForError(follower)).toMatchObject({ kind: "usage_limit", status_code: 400 });
  });

  test("[MO-13] reports an unreachable provider as unreachable, not as a timeout", async () => {
    const clock = new ManualClock();
    await using world = await openModelWorld({ clock });
    const { provider } = await addModel(world);
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { port } = listener;
    listener.stop(true);
    const base_url = `http://127.0.0.1:${port}/v1`;
    await world.owner.patch(`/api/v2/chats/providers/${provider.id}`, { base_url, api_key: "" });
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    expect(await waitForRetry(follower)).toMatchObject({
      kind: "timeout",
      error: "The model provider My openai-compat cannot be reached: its address refuses connections.",
    });
  });

  test("[CM-7] a history that cannot be shortened enough ends with an error that explains it", async () => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    const message = "This model's maximum context length is 10 tokens";
    (await world.upstream.next()).answer(400, { error: { message, type: "invalid_request_error" } });
    expect(await waitForError(follower)).toMatchObject({
      kind: "config",
      retryable: false,
      detail: expect.stringContaining(message),
      message: expect.stringContaining("This chat is too long for its model at the model provider My openai-compat"),
    });
  });

  test("[MO-11] a retry delay above five minutes ends the turn with an error that names the time", async () => {
    const clock = new ManualClock();
    await using world = await openModelWorld({ clock });
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    const retryTime = new Date(clock.now() + 3_600_000).toISOString();
    (await world.upstream.next()).answer(503, { error: { message: "busy" } }, { "retry-after": "3600" });
    const error = await waitForError(follower);
    expect(error).toMatchObject({ kind: "rate_limit", retryable: true, status_code: 503 });
    expect(error?.message).toContain(`It asks to retry after ${retryTime}.`);
    expect((await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).status).toBe("error");
  });

  test("[MO-11] a restarted server waits for the rest of the delay that the provider requested", async () => {
    const clock = new ManualClock();
    using directory = tempDirectory();
    await using upstream = await ModelServer.start();
    const options = { clock, directory: directory.path };
    const id = await (async () => {
      await using server = await startTestServer(options);
      const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
      const [organization] = await owner.get<{ id: string }[]>("/api/v2/organizations");
      await addModel({ owner, upstream });
      const chat = await createChat({ owner, organization_id: organization?.id ?? "" }, "hello");
      using follower = await Follower.open(owner, chat.id);
      (await upstream.next()).answer(429, { error: { message: "slow down" } }, { "retry-after": "200" });
      expect(await waitForRetry(follower)).toMatchObject({ kind: "rate_limit", delay_ms: 200_000 });
      return chat.id;
    })();
    clock.advance(50_000);
    await using server = await startTestServer(options);
    const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    using follower = await Follower.open(owner, id);
    await clock.timerIn(150_000);
    expect(upstream.calls).toHaveLength(1);
    clock.advance(150_000);
    (await upstream.next()).answer(429, { error: { message: "slow down" } });
    // The attempt counter of the first server continues.
    expect(await waitForRetry(follower, 2)).toMatchObject({ attempt: 2, delay_ms: 2_000 });
  });

  test("[MO-38] requests an empty answer again; a second one ends the turn with an error", async () => {
    const clock = new ManualClock();
    await using world = await openModelWorld({ clock });
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    (await world.upstream.next()).say({ text: "\n" }, { finish: "stop" }).end();
    expect(await waitForRetry(follower)).toMatchObject({ kind: "generic", attempt: 1 });
    await clock.timerIn(1_000);
    clock.advance(1_000);
    (await world.upstream.next()).say({ finish: "stop" }).end();
    expect(await waitForError(follower)).toMatchObject({
      kind: "generic",
      message: "The model provider My openai-compat sent an empty answer, twice in a row.",
    });
    await sendMessage(world, chat.id, "and now?");
    (await world.upstream.next()).say({ text: "Here." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: Here.");
  });

  test("[MO-39] marks an answer that reaches the output limit, and continues it at most three times", async () => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "tell me all");
    using follower = await Follower.open(world.owner, chat.id);
    (await world.upstream.next()).say({ text: "one " }, { finish: "length" }).end();
    const continuation = await world.upstream.next();
    const sentMessages = (continuation.body.messages as { role: string; content: string }[]).filter(
      ({ role }) => role !== "system",
    );
    expect(sentMessages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(sentMessages.at(-1)?.content).toContain("Go on exactly where it stopped");
    continuation.say({ text: "two " }, { finish: "length" }).end();
    (await world.upstream.next()).say({ text: "three " }, { finish: "length" }).end();
    (await world.upstream.next()).say({ text: "four " }, { finish: "length" }).end();
    await follower.until(({ status }) => status === "waiting");
    const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`);
    const texts = messages.reverse().map(({ role, content }) => `${role}: ${content[0]?.text}`);
    const notice = "assistant: [The answer has reached the model's output limit. It is continued below.]";
    expect(texts).toEqual([
      ...["user: tell me all", "assistant: one ", notice, "assistant: two ", notice, "assistant: three ", notice],
      ...["assistant: four ", expect.stringContaining("is incomplete. Ask the model to continue")],
    ]);
    expect(world.upstream.calls).toHaveLength(4);
  });

  test("[MO-39] a model that spends its whole limit on reasoning is not called again; the error says what to change", async () => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "think");
    using follower = await Follower.open(world.owner, chat.id);
    (await world.upstream.next()).say({ reasoning: "hm, " }, { finish: "length" }).end();
    expect(await waitForError(follower)).toMatchObject({
      kind: "config",
      retryable: false,
      message: expect.stringContaining("Raise the limit or lower"),
    });
  });
});
