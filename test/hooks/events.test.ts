// The seven events of lifecycle hooks, received and controlled by a consumer written from docs/hooks.md in another language.
import { expect } from "bun:test";
import { createHmac } from "node:crypto";
import type { ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import { createChat, Follower, formatMessage, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { Consumer, SECRET } from "./world.ts";

const python = [needs.python3];
const SHORT_CONTEXT = { context_limit: 1_000, compression_threshold: 50 };

type PromptMessage = { role: string; content: unknown; tool_calls?: { function: { arguments: string } }[] };
const stringifyBody = (call: ModelCall): string => JSON.stringify(call.body);
const listRoles = (call: ModelCall): string =>
  (call.body.messages as PromptMessage[]).map(({ role }) => role).join(" ");
const isWaiting = ({ status }: Follower): boolean => status === "waiting";

testNeeding(
  python,
  "[HK-1] [HK-2] [HK-6] [HK-7] [HK-10] [HK-12] a consumer gets every event of a chat, correctly signed, and can control each",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openModelWorld({ env: consumer.env({ SLIPWAY_CHAT_DEBUG_LOGGING: "true" }) });
    await addModel(world, "openai-compat", SHORT_CONTEXT);
    await world.owner.fetch("PUT", "/api/v2/chats/config/user-prompt", { custom_prompt: "Be brief." });
    await consumer.rule(
      { event: "session_start", answer: { model_context: "CTX-START", user_message: "note of start" } },
      {
        event: "user_prompt_submit",
        times: 1,
        answer: {
          permission: { decision: "allow", input_override: { prompt: "list them politely" } },
          model_context: "CTX-PROMPT",
          user_message: "note of prompt",
        },
      },
      {
        event: "pre_tool_use",
        times: 1,
        answer: {
          permission: { decision: "allow", input_override: { query: "chosen" } },
          model_context: "CTX-PRE",
          user_message: "note of call",
        },
      },
      { event: "post_tool_use", times: 1, answer: { model_context: "CTX-POST" } },
      { event: "pre_compact", answer: { model_context: "HEED-THIS" } },
      { event: "post_compact", answer: { model_context: "CTX-COMPACTED", user_message: "note of compaction" } },
      { event: "stop", times: 1, answer: { model_context: "CTX-STOP", user_message: "note of end" } },
    );
    const chat = await createChat(world, "list them", { system_prompt: "You are terse." });
    using follower = await Follower.open(world.owner, chat.id);
    const firstCall = await world.upstream.next();
    expect(stringifyBody(firstCall)).toContain("list them politely");
    for (const context of ["CTX-PROMPT", "CTX-START", "Be brief."]) expect(stringifyBody(firstCall)).toContain(context);
    expect(stringifyBody(firstCall)).not.toMatch(/note of|"list them"/);
    const requestedArgs = '{ "query" : "wanted" }';
    firstCall
      .say(
        { call: { id: "call-1", name: "list_templates", args: requestedArgs } },
        { finish: "tool_calls", usage: { input: 100, output: 5 } },
      )
      .end();
    const secondCall = await world.upstream.next();
    // The model does not see that its call was changed. Hook messages between a call and its result are moved after the result.
    expect(listRoles(secondCall)).toBe("system user assistant tool user");
    expect(stringifyBody(secondCall)).toMatch(/CTX-PRE[\s\S]*CTX-POST/);
    secondCall.say({ text: "Here they are." }, { finish: "stop", usage: { input: 600, output: 5 } }).end();
    await follower.until(isWaiting);

    await consumer.rule(
      { event: "pre_compact", answer: { model_context: "HEED-THIS", user_message: "note before compaction" } },
      { event: "post_compact", answer: { model_context: "CTX-COMPACTED", user_message: "note of compaction" } },
    );
    await sendMessage(world, chat.id, "and now?");
    const summaryCall = await world.upstream.next();
    expect(stringifyBody(summaryCall)).toContain("HEED-THIS");
    // Summaries are shown to people, so they must not contain text that is only for the model.
    expect(stringifyBody(summaryCall)).not.toMatch(/CTX-/);
    summaryCall.say({ text: "SUMMARY" }, { finish: "stop", usage: { input: 50, output: 5 } }).end();
    const thirdCall = await world.upstream.next();
    expect(stringifyBody(thirdCall)).toMatch(/SUMMARY/);
    for (const context of ["CTX-PROMPT", "CTX-STOP", "CTX-COMPACTED"])
      expect(stringifyBody(thirdCall)).toContain(context);
    thirdCall.say({ text: "Done." }, { finish: "stop", usage: { input: 80, output: 5 } }).end();
    await follower.until((state) => isWaiting(state) && state.history.includes("assistant: Done."));

    const received = await consumer.listReceived();
    expect(received.flatMap(({ problems }) => problems)).toEqual([]);
    expect(received.map(({ event }) => event)).toEqual([
      ...["user_prompt_submit", "session_start", "pre_tool_use", "post_tool_use", "stop"],
      ...["user_prompt_submit", "session_start", "pre_compact", "post_compact", "stop"],
    ]);
    const [prompt, start, call, result] = received;
    expect(prompt?.request.meta).toMatchObject({ chat_id: chat.id, owner_id: chat.owner_id });
    expect(prompt?.request.data).toMatchObject({
      prompt: "list them",
      parts: [{ type: "text", text: "list them" }],
      system_prompt: "You are terse.",
      custom_prompt: "Be brief.",
    });
    expect(start?.request.data).toEqual({ source: "startup" });
    expect(received[6]?.request.data).toEqual({ source: "resume" });
    expect(call?.request.data).toMatchObject({ tool_use_id: "call-1", tool_name: "list_templates" });
    expect(call?.body).toContain(`"tool_input":${requestedArgs}`);
    expect(result?.request.data).toMatchObject({
      tool_use_id: "call-1",
      tool_response: { templates: expect.anything() },
    });
    expect(new Set(received.slice(1, 5).map(({ request }) => request.meta.turn_id)).size).toBe(1);
    expect(new Set(received.map(({ request }) => request.meta.dispatch_id)).size).toBe(received.length);

    const page = await world.owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages?limit=200`);
    const shown = page.messages.reverse();
    expect(shown.map(formatMessage)).toEqual([
      ...["user: list them politelynote of prompt", "system: note of start", "assistant: tool-call"],
      ...["system: note of call", "tool: tool-result", "assistant: Here they are.", "system: note of end"],
      ...["user: and now?", "assistant: tool-call", "tool: tool-result"],
      ...["system: note before compaction", "system: note of compaction", "assistant: Done."],
    ]);
    const proposed = shown.flatMap(({ content }) => content).find(({ type }) => type === "tool-call");
    expect(proposed).toMatchObject({ args: { query: "chosen" }, hook_rewritten: true });
    await checkHidden(world, chat.id, shown, follower);
  },
);

/** Checks that hook messages for the model appear nowhere else: requests treat their rows as missing. */
const checkHidden = async (
  world: Awaited<ReturnType<typeof openModelWorld>>,
  id: string,
  shown: readonly ChatMessage[],
  follower: Follower,
): Promise<void> => {
  const { owner } = world;
  const path = `/api/v2/chats/${id}`;
  const fork = (await (await owner.fetch("POST", `${path}/fork`, {})).json()) as { id: string };
  const responses = await Promise.all(
    [
      ...[path, `${path}/messages`, `${path}/prompts`, `${path}/debug/runs`, `/api/v2/chats/${fork.id}/messages`],
      "/api/v2/chats?q=search:CTX-PROMPT",
    ].map(async (url) => (await owner.fetch("GET", url)).text()),
  );
  const [run] = JSON.parse(responses[3] ?? "[]") as { id: string }[];
  const recorded = await (await owner.fetch("GET", `${path}/debug/runs/${run?.id}`)).text();
  expect(recorded).toContain("hook-context");
  expect(recorded).not.toContain("CTX-");
  expect(responses.join("\n")).not.toMatch(/CTX-(?!PROMPT")/);
  expect(responses.at(-1)).toBe("[]");
  expect(JSON.stringify(follower.events)).not.toContain("CTX-");
  const visible = new Set(shown.map((message) => message.id));
  const ids = shown.map((message) => message.id);
  const editMessage = async (message: number | string) => {
    const response = await owner.fetch("PATCH", `${path}/messages/${message}`, {
      content: [{ type: "text", text: "x" }],
    });
    return { status: response.status, body: await response.text() };
  };
  const unknown = await editMessage(Math.max(...ids) + 1_000);
  expect(unknown.status).toBe(404);
  const hidden = Array.from({ length: Math.max(...ids) - Math.min(...ids) }, (_, i) => Math.min(...ids) + i).filter(
    (messageId) => !visible.has(messageId),
  );
  expect(hidden.length).toBeGreaterThan(4);
  for (const hiddenId of hidden) {
    expect(await editMessage(hiddenId)).toEqual(unknown);
    expect((await owner.fetch("POST", `${path}/fork`, { message_id: hiddenId })).status).toBe(404);
  }
};

testNeeding(python, "[HK-3] the token of a request can be checked with the shared secret alone", async () => {
  await using consumer = await Consumer.start();
  await using world = await openModelWorld({ env: consumer.env() });
  await addModel(world, "openai-compat", {});
  const chat = await createChat(world, "hello");
  const [received] = await consumer.listReceived("user_prompt_submit");
  const [head = "", claims = "", signature] = (received?.authorization ?? "").replace("Bearer ", "").split(".");
  expect(createHmac("sha256", SECRET).update(`${head}.${claims}`).digest("base64url")).toBe(signature ?? "");
  const { deployment_id } = await world.owner.get<{ deployment_id: string }>("/api/v2/buildinfo");
  const payload = JSON.parse(Buffer.from(claims, "base64url").toString());
  expect(payload).toMatchObject({
    iss: deployment_id,
    sub: `slipway:chat:${chat.id}`,
    aud: consumer.url,
    type: "user_prompt_submit",
    jti: received?.request.meta.dispatch_id,
    exp: payload.iat + 120,
    nbf: payload.iat - 30,
  });
});

testNeeding(
  python,
  "[CM-11] [HK-10] a consumer is notified of a cleared chat, and changes or denies a summary's instructions",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openModelWorld({ env: consumer.env({ SLIPWAY_CHAT_DEBUG_LOGGING: "true" }) });
    await addModel(world, "openai-compat");
    const answerNext = async (text: string) => (await world.upstream.next()).say({ text }, { finish: "stop" }).end();
    const chat = await createChat(world, "hello");
    const path = `/api/v2/chats/${chat.id}`;
    using follower = await Follower.open(world.owner, chat.id);
    await answerNext("first");
    await follower.until((state) => isWaiting(state) && state.history.length === 2);
    await world.owner.post(`${path}/clear`);
    for (const text of ["second", "third"]) {
      await sendMessage(world, chat.id, text);
      await answerNext(`to ${text}`);
      await follower.until((state) => isWaiting(state) && state.history.at(-1) === `assistant: to ${text}`);
    }
    const started = await consumer.listReceived("session_start");
    expect(started.map(({ request }) => request.data.source)).toEqual(["startup", "clear", "resume"]);

    const compact = (instructions: string) => world.owner.fetch("POST", `${path}/compact`, { instructions });
    await consumer.rule({
      event: "user_prompt_submit",
      times: 1,
      answer: { permission: { decision: "deny" }, user_message: "Not that." },
    });
    const denied = await compact("Quote the keys.");
    expect([denied.status, await denied.json()]).toEqual([403, expect.objectContaining({ message: "Not that." })]);
    await consumer.rule({
      event: "user_prompt_submit",
      times: 1,
      answer: {
        permission: { decision: "allow", input_override: { prompt: "Quote no keys." } },
        model_context: "CTX-COMPACT",
        user_message: "note of keys",
      },
    });
    expect((await compact("Quote the keys.")).status).toBe(200);
    const compactionCall = await world.upstream.next();
    expect(stringifyBody(compactionCall)).toMatch(/CTX-COMPACT[\s\S]*Quote no keys\./);
    expect(stringifyBody(compactionCall)).not.toContain("Quote the keys.");
    compactionCall.say({ text: "NOTES" }, { finish: "stop" }).end();
    await follower.until((state) => isWaiting(state) && state.history.at(-1) === "system: note of keys");
    const page = await world.owner.get<MessagePage>(`${path}/messages?limit=200`);
    expect(JSON.stringify(page)).toContain("Quote no keys.");
    expect(JSON.stringify([page, follower.events])).not.toContain("CTX-COMPACT");
    expect((await consumer.listReceived("user_prompt_submit")).flatMap(({ problems }) => problems)).toEqual([]);
  },
);
