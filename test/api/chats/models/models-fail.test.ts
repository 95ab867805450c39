// Every failure mode of a provider, on a real socket, through the public API. Each ends as in the table of facts/chats 5.7.
import { describe, expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, MODEL_KEY, openModelWorld } from "#test/support/models/model-world.ts";

type Failure = {
  readonly name: string;
  readonly fail: (call: ModelCall) => void;
  readonly kind: ChatErrorKind;
  readonly status?: number;
};

const createFailure = (status: number, kind: ChatErrorKind, message = "no"): Failure => ({
  name: `${status} ${message}`,
  fail: (call) => call.answer(status, { error: { message, type: "some_error", code: null, param: null } }),
  kind,
  status,
});

const toErrorEvent = (message: string) => `data: ${JSON.stringify({ error: { message, type: "some_error" } })}\n\n`;

const PERMANENT_FAILURES: Failure[] = [
  createFailure(401, "auth", "Incorrect API key"),
  createFailure(403, "auth"),
  createFailure(400, "generic", "bad field"),
  createFailure(400, "config", "This model's maximum context length is 10 tokens"),
  createFailure(404, "config", "The model `x` does not exist"),
  createFailure(402, "usage_limit", "payment needed"),
  createFailure(429, "usage_limit", "You exceeded your current quota"),
  createFailure(400, "provider_disabled", "provider_disabled"),
  createFailure(307, "generic"),
  {
    name: "a refusal without text",
    fail: (call) => call.say({ finish: "content_filter" }).end(),
    kind: "content_filter",
  },
  {
    name: "an error in the middle of the answer",
    fail: (call) => call.say({ text: "Well" }).sendRaw(toErrorEvent("quota used up")).end(),
    kind: "usage_limit",
  },
];

const TRANSIENT_FAILURES: Failure[] = [
  createFailure(408, "timeout"),
  createFailure(429, "rate_limit", "slow down"),
  createFailure(500, "generic"),
  createFailure(502, "timeout"),
  createFailure(503, "timeout"),
  createFailure(504, "timeout"),
  createFailure(529, "overloaded"),
  {
    name: "an answer that is not JSON",
    fail: (call) => call.answer(502, "<html>Bad Gateway"),
    kind: "timeout",
    status: 502,
  },
  { name: "a reset before the answer", fail: (call) => call.resetConnection(), kind: "timeout" },
  {
    name: "a reset in the middle",
    fail: (call) =>
      void call.sendRaw('data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Well"}}]}\n\n').resetConnection(),
    kind: "timeout",
  },
  {
    name: "a line that is not JSON, and no end",
    fail: (call) => call.say({ text: "Well" }).sendRaw("data: {oops\n\n").end(),
    kind: "timeout",
  },
  { name: "an end without a finish reason", fail: (call) => call.say({ text: "Well" }).end(), kind: "timeout" },
  {
    name: "an end within a line of JSON",
    fail: (call) => call.say({ text: "Well" }).sendRaw('data: {"choi').end(),
    kind: "timeout",
  },
  { name: "an empty stream", fail: (call) => call.end(), kind: "timeout" },
  {
    name: "an overload in the middle",
    fail: (call) => call.say({ text: "Well" }).sendRaw(toErrorEvent("Overloaded")).end(),
    kind: "overloaded",
  },
];

/** Returns the chat's error once its turn has ended with one. */
const waitForError = async (follower: Follower) => {
  await follower.until(({ events }) => events.some(({ type }) => type === "error"));
  const event = follower.events.findLast(({ type }) => type === "error");
  return event?.type === "error" ? event.error : undefined;
};

/** Ends an answer with a filter's error, in the form that the server uses. */
const endWithFilterError = (toError: (output: object) => object) => (call: ModelCall) =>
  call
    .say({ text: "Well" })
    .sendRaw(`data: ${JSON.stringify(toError({ message: "The answer was stopped.", code: "content_filter" }))}\n\n`)
    .end();

describe("a filter that reports an error", () => {
  test.each([
    ["an error", (output: object) => ({ error: output })],
    [
      "an error with its type",
      (output: object) => ({ error: { ...output, type: "invalid_request_error", param: null } }),
    ],
  ])("[MO-13] keeps the beginning of an answer that ends with %s, and reports content_filter", async (_, toError) => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    endWithFilterError(toError)(await world.upstream.next());
    const error = await waitForError(follower);
    expect(error).toMatchObject({ kind: "content_filter", retryable: false });
    expect(error?.message).toContain("declined to answer");
    expect(error?.detail).toBe("The answer was stopped. (content_filter)");
    expect(follower.history).toContain("assistant: Well");
  });
});

describe("a permanent failure", () => {
  test.each(PERMANENT_FAILURES)("[MO-13] $name ends the turn as $kind", async ({ fail, kind, status }) => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    fail(await world.upstream.next());
    expect(await waitForError(follower)).toMatchObject({
      kind,
      retryable: false,
      ...(status ? { status_code: status } : {}),
    });
    const { last_error } = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(last_error).toMatchObject({ kind, provider: "openai-compat" });
    expect(last_error?.message).toContain("My openai-compat");
    // The next message is a new attempt.
    await sendMessage(world, chat.id, "again");
    (await world.upstream.next()).say({ text: "Yes" }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: Yes");
  });

  test.each(["anthropic", "google"] as ProviderKind[])(
    "[MO-13] recognizes an invalid key in the error format of %s",
    async (kind) => {
      await using world = await openModelWorld();
      await addModel(world, kind);
      const chat = await createChat(world, "hello");
      using follower = await Follower.open(world.owner, chat.id);
      const message = kind === "anthropic" ? "invalid x-api-key" : "API key not valid. Please pass a valid API key.";
      const body =
        kind === "anthropic"
          ? { type: "error", error: { type: "authentication_error", message } }
          : { error: { code: 400, message, status: "INVALID_ARGUMENT" } };
      (await world.upstream.next()).answer(kind === "anthropic" ? 401 : 400, body);
      expect(await waitForError(follower)).toMatchObject({ kind: "auth", retryable: false, provider: kind });
    },
  );

  test("[MO-12] neither the error nor the chat reveals the key, even if the provider repeats it", async () => {
    await using world = await openModelWorld();
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    call.answer(401, { error: { message: `The key ${MODEL_KEY} is wrong. ${"x".repeat(2_000)}` } });
    const error = await waitForError(follower);
    expect(error?.detail).toContain("[hidden]");
    expect([...(error?.detail ?? "")].length).toBeLessThanOrEqual(500);
    expect(JSON.stringify(await world.owner.get(`/api/v2/chats/${chat.id}`))).not.toContain(MODEL_KEY);
  });

  test("[MO-14] a disabled provider or one without its key is never called", async () => {
    await using world = await openModelWorld();
    const { provider } = await addModel(world, "anthropic");
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    (await world.upstream.next()).say({ text: "Hi" }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
    const path = `/api/v2/chats/providers/${provider.id}`;
    await world.owner.patch(path, { api_key: "" });
    await sendMessage(world, chat.id, "one");
    expect(await waitForError(follower)).toMatchObject({ kind: "missing_key", retryable: false });
    await world.owner.patch(path, { api_key: MODEL_KEY, enabled: false });
    await sendMessage(world, chat.id, "two");
    await follower.until(({ events }) => events.filter(({ type }) => type === "error").length === 2);
    expect(await waitForError(follower)).toMatchObject({ kind: "provider_disabled", retryable: false });
    expect(world.upstream.calls).toHaveLength(1);
  });
});

describeInProcess("a transient failure", () => {
  const waitForRetry = async (follower: Follower) => {
    await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
    const event = follower.events.findLast(({ type }) => type === "retry");
    return event?.type === "retry" ? event.retry : undefined;
  };

  test.each(TRANSIENT_FAILURES)("[MO-13] retries after $name, as $kind", async ({ fail, kind, status }) => {
    const clock = new ManualClock();
    await using world = await openModelWorld({ clock });
    await addModel(world);
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    fail(await world.upstream.next());
    const retry = await waitForRetry(follower);
    expect(retry).toMatchObject({ attempt: 1, delay_ms: 1_000, kind, ...(status ? { status_code: status } : {}) });
    await clock.timerIn(1_000);
    clock.advance(1_000);
    (await world.upstream.next()).say({ text: "Yes" }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
    expect(follower.history).toEqual(["user: hello", "assistant: Yes"]);
  });
});
