// Consumers that are unreachable or slow, or send responses that are invalid or not trusted: the action is not performed.
import { expect } from "bun:test";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  loadHistory,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { Consumer, OLD_SECRET, type Rule, SECRET } from "./world.ts";

const python = [needs.python3];

type Refusal = { status: number; body: { message: string; kind?: string; detail?: string } };
type Dispatches = {
  dispatches: { id: string; event: string; result: string; chat_id: string; request?: string }[];
  has_more: boolean;
};

const tryCreate = async (world: ChatWorld, text = "hello"): Promise<Refusal> => {
  const { organization_id } = world;
  const response = await world.owner.fetch("POST", "/api/v2/chats", { organization_id, content: toTextContent(text) });
  return { status: response.status, body: (await response.json()) as Refusal["body"] };
};

const signInAdmin = (world: ChatWorld): Promise<Client> =>
  new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);

const FAILURES: readonly [string, Omit<Rule, "event">][] = [
  ["http_error", { how: "status", status: 500, answer: {} }],
  ["http_error", { how: "status", status: 302, answer: {} }],
  ["timeout", { how: "slow", seconds: 2 }],
  ["connection_failed", { how: "reset" }],
  ["signature_invalid", { how: "unsigned", answer: {} }],
  ["signature_invalid", { how: "unsigned" }],
  ["signature_invalid", { how: "wrongly signed", answer: {} }],
  ["signature_invalid", { how: "other body", answer: {} }],
  ["signature_invalid", { how: "expired", answer: {} }],
  ["signature_invalid", { how: "reflected", answer: {} }],
  ["signature_invalid", { how: "other event", answer: {} }],
  ["protocol_error", { raw: "no json" }],
  ["protocol_error", { raw: '{"user_message":"a"} {}' }],
  ["protocol_error", { raw: '{"user_message":"a","user_message":"b"}' }],
  ["protocol_error", { raw: "[]" }],
  ["protocol_error", { answer: { unknown: 1 } }],
  ["protocol_error", { answer: { model_context: null } }],
  ["protocol_error", { answer: { model_context: "x".repeat(16_385) } }],
  ["protocol_error", { answer: { user_message: "é".repeat(8_193) } }],
  ["protocol_error", { answer: { permission: { decision: "maybe" } } }],
  ["protocol_error", { answer: { permission: { decision: "deny", input_override: { prompt: "x" } } } }],
  ["protocol_error", { answer: { permission: { decision: "allow", input_override: { prompt: " " } } } }],
  ["protocol_error", { answer: { permission: { decision: "allow", input_override: { prompt: "x", more: 1 } } } }],
  ["protocol_error", { answer: { permission: { decision: "deny", reason: "x".repeat(4_097) } } }],
  [
    "protocol_error",
    { answer: { permission: { decision: "allow", input_override: { prompt: "x".repeat(262_144) } } } },
  ],
];

testNeeding(
  python,
  "[HK-4] [HK-5] [HK-8] [HK-14] an invalid response refuses the prompt with 502 and the class of the failure, without the consumer's data",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env({ SLIPWAY_HOOK_TIMEOUT: "700ms" }) });
    const before = await world.owner.get<Chat[]>("/api/v2/chats");
    for (const [failure, rule] of FAILURES) {
      await consumer.rule({ event: "user_prompt_submit", ...rule });
      const { status, body } = await tryCreate(world);
      expect([rule, status, body.kind]).toEqual([rule, 502, "hook_dispatch_failed"]);
      expect(body.detail).toMatch(new RegExp(`^user_prompt_submit : ${failure} \\([0-9a-f-]{36}\\)$`));
      expect(JSON.stringify(body)).not.toContain("127.0.0.1");
    }
    // A valid response is not accepted for another request.
    await consumer.rule({ event: "user_prompt_submit", how: "replayed", answer: {} });
    expect((await tryCreate(world)).body.detail).toContain("signature_invalid");
    expect(await world.owner.get<Chat[]>("/api/v2/chats")).toEqual(before);
    const { dispatches } = await (await signInAdmin(world)).get<Dispatches>(
      "/api/v2/hooks/dispatches?limit=200&event=user_prompt_submit",
    );
    expect(dispatches.map(({ result }) => result).reverse()).toEqual([
      ...FAILURES.map(([failure]) => failure),
      "signature_invalid",
    ]);
    expect(world.models.calls).toEqual([]);
    await consumer.kill();
    expect((await tryCreate(world)).body.detail).toContain("connection_failed");
  },
);

testNeeding(
  python,
  "[HK-8] a denied prompt is not stored: 403 with the policy's message, for new chats, messages and edits",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env() });
    const chat = await createChat(world, "fine");
    (await world.models.next()).say("Good.").finish();
    using follower = await Follower.open(world.owner, chat.id);
    await follower.until(({ status }) => status === "waiting");
    const history = await loadHistory(world.owner, chat.id);
    await consumer.rule({
      event: "user_prompt_submit",
      answer: {
        permission: { decision: "deny", reason: "policy 7" },
        user_message: "No keys here.",
        model_context: "never seen",
      },
    });
    const [message] = (await world.owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`)).messages.slice(-1);
    const path = `/api/v2/chats/${chat.id}/messages`;
    const responses = [
      await world.owner.fetch("POST", path, { content: toTextContent("sk-secret") }),
      await world.owner.fetch("PATCH", `${path}/${message?.id}`, { content: toTextContent("sk-secret") }),
    ];
    for (const response of responses) {
      expect(response.status).toBe(403);
      expect(await response.json()).toEqual({ message: "No keys here.", kind: "hook_denied" });
    }
    expect(await tryCreate(world)).toEqual({ status: 403, body: { message: "No keys here.", kind: "hook_denied" } });
    expect(await loadHistory(world.owner, chat.id)).toEqual(history);
    // Invalid requests are rejected before the hook is called.
    const receivedBefore = (await consumer.listReceived()).length;
    expect((await world.owner.fetch("PATCH", `${path}/999999999`, { content: toTextContent("x") })).status).toBe(404);
    await world.owner.patch(`/api/v2/chats/${chat.id}`, { archived: true });
    expect((await world.owner.fetch("POST", path, { content: toTextContent("x") })).status).toBe(409);
    expect((await consumer.listReceived()).length).toBe(receivedBefore);
    const { audit_logs } = await (await signInAdmin(world)).get<{
      audit_logs: { status_code: number; additional_fields: object }[];
    }>("/api/v2/audit?q=resource_type:chat&limit=200");
    expect(
      audit_logs.filter(({ status_code }) => status_code === 403).map(({ additional_fields }) => additional_fields),
    ).toEqual(
      Array.from({ length: 3 }, () =>
        expect.objectContaining({ hook_event: "user_prompt_submit", hook_result: "deny" }),
      ),
    );
  },
);

testNeeding(
  python,
  "[HK-9] a turn whose hook fails ends in an error with event, class and dispatch; a new message continues the chat",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env() });
    const failAtHook = async (event: string, speak: (call: Awaited<ReturnType<typeof world.models.next>>) => void) => {
      await consumer.rule({ event, how: "unsigned", answer: {} });
      const chat = await createChat(world, "hello");
      using follower = await Follower.open(world.owner, chat.id);
      if (event !== "session_start") speak(await world.models.next());
      await follower.until(({ status }) => status === "error");
      const { last_error } = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
      expect(last_error?.kind).toBe("hook_dispatch_failed");
      expect(last_error?.detail).toMatch(new RegExp(`^${event} : signature_invalid \\([0-9a-f-]{36}\\)$`));
      const historyAtError = await loadHistory(world.owner, chat.id);
      await consumer.rule();
      await sendMessage(world, chat.id, "go on");
      (await world.models.next()).say("Back.").finish();
      await follower.until(({ status, history }) => status === "waiting" && history.includes("assistant: Back."));
      return historyAtError;
    };
    expect(await failAtHook("session_start", () => {})).toEqual(["user: hello"]);
    const callTool = (call: Awaited<ReturnType<typeof world.models.next>>) =>
      call.say("I look.").callTool("c1", "list_templates", {}).finish("tool_calls");
    expect(await failAtHook("pre_tool_use", callTool)).toEqual(["user: hello", "assistant: I look."]);
    expect(await failAtHook("post_tool_use", callTool)).toEqual([
      ...["user: hello", "assistant: I look.tool-call", "tool: tool-result"],
    ]);
    expect(await failAtHook("stop", (call) => call.say("All.").finish())).toEqual(["user: hello", "assistant: All."]);
  },
);

testNeeding(
  python,
  "[HK-7] [HK-13] a denied call is answered with the policy's reason, and ambiguous calls are refused before the hook is called",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env() });
    await consumer.rule({
      event: "pre_tool_use",
      tool: "read_template",
      answer: { permission: { decision: "deny", reason: "Not that one." } },
    });
    await createChat(world, "hello");
    const call = await world.models.next();
    const push = (id: string, name: string, input: string) =>
      call.push({ type: "tool_call", id, name, args: JSON.parse(input), input });
    push("c1", "list_templates", '{"query":"a","query":"b"}');
    push("c2", "list_templates", '{"Query":"a"}');
    push("c3", "read_template", '{"template_id":"x"}');
    push("c4", "list_templates", '{ "page": 1 }');
    call.finish("tool_calls");
    const next = await world.models.next();
    const results = next.request.messages.flatMap(({ content }) =>
      content.filter(({ type }) => type === "tool-result"),
    );
    expect(results.map(({ tool_call_id, is_error }) => [tool_call_id, is_error])).toEqual([
      ...[
        ["c1", true],
        ["c2", true],
        ["c3", true],
        ["c4", false],
      ],
    ]);
    expect(JSON.stringify(results)).toMatch(
      /key \\"query\\" twice[\s\S]*key \\"Query\\" with different capitalization[\s\S]*Not that one\./,
    );
    const received = await consumer.listReceived("pre_tool_use");
    expect(received.map(({ request }) => request.data.tool_use_id)).toEqual(["c3", "c4"]);
    expect(received[1]?.body).toContain('"tool_input":{ "page": 1 }');
    expect((await consumer.listReceived("post_tool_use")).map(({ request }) => request.data.tool_use_id)).toEqual([
      "c4",
    ]);
    // An input whose key differs in case is not a valid response.
    await consumer.rule({
      event: "pre_tool_use",
      answer: { permission: { decision: "allow", input_override: { QUERY: "x" } } },
    });
    next.callTool("c5", "list_templates", {}).finish("tool_calls");
    const [chat] = await world.owner.get<Chat[]>("/api/v2/chats");
    using follower = await Follower.open(world.owner, chat?.id ?? "");
    await follower.until(({ status }) => status === "error");
    expect((await world.owner.get<Chat>(`/api/v2/chats/${chat?.id}`)).last_error?.detail).toContain(
      "pre_tool_use : protocol_error",
    );
  },
);

testNeeding(
  python,
  "[HK-8] a client's results are refused together when the hook fails, and can be resent",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env() });
    const chat = await createChat(world, "hello", { unsafe_dynamic_tools: [{ name: "look" }] });
    (await world.models.next()).callTool("c1", "look", { at: 1 }).finish("tool_calls");
    using follower = await Follower.open(world.owner, chat.id);
    await follower.until(({ status }) => status === "requires_action");
    const sendResult = () =>
      world.owner.fetch("POST", `/api/v2/chats/${chat.id}/tool-results`, {
        results: [{ tool_call_id: "c1", output: { seen: 1 } }],
      });
    await consumer.rule({ event: "post_tool_use", how: "reset" });
    expect((await sendResult()).status).toBe(502);
    expect((await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).status).toBe("requires_action");
    await consumer.rule({ event: "post_tool_use", answer: { model_context: "CTX-RESULT", user_message: "noted" } });
    expect((await sendResult()).status).toBe(204);
    const next = await world.models.next();
    expect(JSON.stringify(next.request.messages)).toContain("CTX-RESULT");
    const [, received] = (await consumer.listReceived("post_tool_use")).slice(-2);
    expect(received?.request.data).toEqual({ tool_use_id: "c1", tool_name: "look", tool_response: { seen: 1 } });
    expect(await loadHistory(world.owner, chat.id)).toEqual([
      ...["user: hello", "assistant: tool-call", "tool: tool-result", "system: noted"],
    ]);
    // After a failure, the hook is not called for the remaining results.
    const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    for (const id of ids) next.callTool(id, "look", {});
    next.finish("tool_calls");
    await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "requires_action");
    const results = ids.map((tool_call_id) => ({ tool_call_id, output: null }));
    const sendResults = () => world.owner.fetch("POST", `/api/v2/chats/${chat.id}/tool-results`, { results });
    const countHookCalls = async () => (await consumer.listReceived("post_tool_use")).length;
    const before = await countHookCalls();
    await consumer.rule({ event: "post_tool_use", how: "status", status: 500 });
    expect((await sendResults()).status).toBe(502);
    await consumer.rule({ event: "post_tool_use", answer: {} });
    expect((await sendResults()).status).toBe(204);
    await world.models.next();
    expect((await countHookCalls()) - before).toBeLessThanOrEqual(8 + ids.length);
  },
);

testNeeding(
  python,
  "[HK-9] a tool's message to a sub-chat passes the hook: a denial is the tool's error, a failure ends the turn",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env() });
    const chat = await createChat(world, "hello");
    const firstCall = await world.models.next();
    await consumer.rule({
      event: "user_prompt_submit",
      answer: { permission: { decision: "deny" }, user_message: "No agents today." },
    });
    firstCall.callTool("c1", "spawn_agent", { type: "general", prompt: "work" }).finish("tool_calls");
    const secondCall = await world.models.next();
    expect(JSON.stringify(secondCall.request.messages)).toContain("No agents today.");
    const [, spawned] = await consumer.listReceived("user_prompt_submit");
    expect(spawned?.request.meta).toMatchObject({ parent_chat_id: chat.id, root_chat_id: chat.id });
    await consumer.rule({ event: "user_prompt_submit", how: "unsigned", answer: {} });
    secondCall
      .callTool("c2", "spawn_agent", { type: "general", prompt: "work" })
      .callTool("c3", "list_templates", {})
      .finish("tool_calls");
    using follower = await Follower.open(world.owner, chat.id);
    await follower.until(({ status }) => status === "error");
    const shown = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(shown.last_error?.detail).toContain("user_prompt_submit : signature_invalid");
    expect(shown.children).toEqual([]);
    expect((await loadHistory(world.owner, chat.id)).slice(-3)).toEqual([
      ...["assistant: tool-calltool-call", "tool: tool-result", "tool: tool-result"],
    ]);
  },
);

testNeeding(
  python,
  "[HK-15] hooks in mode observe receive all events, delay and change nothing, and their decisions are recorded",
  async () => {
    await using consumer = await Consumer.start();
    const env = consumer.env({ SLIPWAY_HOOK_MODE: "observe", SLIPWAY_HOOK_LEDGER_CONTENTS: "true" });
    await using world = await openChatWorld({ env });
    await consumer.rule(
      { event: "user_prompt_submit", answer: { permission: { decision: "deny" }, user_message: "No." } },
      { event: "session_start", how: "slow", seconds: 3 },
      { event: "stop", answer: { model_context: "CTX", user_message: "note" } },
    );
    const chat = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, chat.id);
    (await world.models.next()).say("Hi.").finish();
    await follower.until(({ status }) => status === "waiting");
    expect(await loadHistory(world.owner, chat.id)).toEqual(["user: hello", "assistant: Hi."]);
    await world.server.context?.hooks.drain();
    const owner = await signInAdmin(world);
    const page = (query: string) => owner.get<Dispatches>(`/api/v2/hooks/dispatches?${query}`);
    const { dispatches } = await page(`chat_id=${chat.id}`);
    const results = Object.fromEntries(dispatches.map(({ event, result }) => [event, result]));
    expect(results).toEqual({ user_prompt_submit: "deny", session_start: "timeout", stop: "none" });
    expect(dispatches.find(({ event }) => event === "user_prompt_submit")?.request).toContain('"prompt":"hello"');
    const firstPage = await page("limit=1");
    expect(firstPage).toMatchObject({ has_more: true, dispatches: [{ id: dispatches[0]?.id }] });
    expect((await page(`limit=2&after_id=${dispatches[0]?.id}`)).dispatches.map(({ id }) => id)).toEqual(
      dispatches.slice(1).map(({ id }) => id),
    );
    expect((await page("result=deny")).dispatches).toHaveLength(1);
    for (const query of ["limit=0", "limit=201", "event=nonsense", "result=maybe", "chat_id=x", "after_id=x"]) {
      expect([query, (await owner.fetch("GET", `/api/v2/hooks/dispatches?${query}`)).status]).toEqual([query, 400]);
    }
  },
);

testNeeding(
  python,
  "[HK-3] during a secret rotation, responses signed with either secret are valid; after it, the old secret is not",
  async () => {
    await using consumer = await Consumer.start([OLD_SECRET]);
    const env = { SLIPWAY_HOOK_URL: consumer.url, SLIPWAY_HOOK_SECRET: OLD_SECRET };
    {
      await using world = await openChatWorld({ env });
      expect((await tryCreate(world)).status).toBe(201);
    }
    {
      // The consumer knows both secrets, and signs responses with the secret that signed the request.
      await using rotatingConsumer = await Consumer.start([OLD_SECRET, SECRET]);
      await using world = await openChatWorld({
        env: rotatingConsumer.env({ SLIPWAY_HOOK_PREVIOUS_SECRET: OLD_SECRET }),
      });
      expect((await tryCreate(world)).status).toBe(201);
      expect((await rotatingConsumer.listReceived()).flatMap(({ problems }) => problems)).toEqual([]);
    }
    await using world = await openChatWorld({ env: consumer.env() });
    expect((await tryCreate(world)).body.detail).toContain("signature_invalid");
  },
);

testNeeding(python, "[HK-11] the model gets only the owner's own prompt that the hook has seen", async () => {
  await using consumer = await Consumer.start();
  await using world = await openChatWorld({ env: consumer.env() });
  const setPrompt = (custom_prompt: string) =>
    world.owner.fetch("PUT", "/api/v2/chats/config/user-prompt", { custom_prompt });
  await setPrompt("SEEN-PROMPT");
  const chat = await createChat(world, "hello");
  const firstCall = await world.models.next();
  await setPrompt("LATER-PROMPT");
  firstCall.callTool("c1", "list_templates", {}).finish("tool_calls");
  const secondCall = await world.models.next();
  const system = JSON.stringify(secondCall.request.messages[0]);
  expect(system).toContain("SEEN-PROMPT");
  expect(system).not.toContain("LATER-PROMPT");
  await sendMessage(world, chat.id, "queued");
  secondCall.say("Done.").finish();
  expect(JSON.stringify((await world.models.next()).request.messages[0])).toContain("LATER-PROMPT");
  expect((await consumer.listReceived("user_prompt_submit")).map(({ request }) => request.data.custom_prompt)).toEqual([
    ...["SEEN-PROMPT", "LATER-PROMPT"],
  ]);
});
