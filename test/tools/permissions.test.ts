// Permissions in a real chat with a real workspace: calls wait for approval, even across a restart, and answers take effect.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findChat } from "#db/chats/chats.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ActionRequired } from "#schema/chats/chat-event.ts";
import { createChat } from "#test/support/chats.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext } from "#test/support/seed.ts";
import { callTools, Follower, listMessages, openChat, openToolWorld } from "./world.ts";

const listRequests = ({ events }: Follower): ActionRequired[] =>
  events.flatMap((event) => (event.type === "action_required" ? [event.action_required] : []));

test(
  "[PE-5][PE-6][PE-7][PE-8] allowed calls run, denied calls fail, and others wait for an answer, even across a restart",
  async () => {
    await using world = await openToolWorld();
    const { owner, home } = world;
    const permissions = {
      default: "allow",
      rules: [
        { tool: "execute", command: "touch denied", action: "deny" },
        { tool: "execute", action: "ask" },
      ],
    };
    const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: { type: "object" } }];
    const { id, call } = await openChat(world, { permissions, unsafe_dynamic_tools });
    const path = `/api/v2/chats/${id}`;
    const sendAnswers = (answers: unknown) =>
      owner.fetch("POST", `${path}/permissions`, { answers }).then(({ status }) => status);
    expect((await owner.get<Chat>(path)).permissions).toEqual(permissions as Chat["permissions"]);
    expect(await sendAnswers([{ tool_call_id: "one", decision: "allow" }])).toBe(409);
    {
      using follower = await Follower.open(owner, id);
      call
        .callTool("free", "write_file", { path: "free", content: "x" })
        .callTool("never", "execute", { command: "touch denied" })
        .callTool("one", "execute", { command: "touch one", timeout: "60s" })
        .callTool("two", "execute", { command: "touch two" })
        .callTool("client", "ask", {})
        .finish("tool_calls");
      await follower.until(({ status }) => status === "requires_action");
      await follower.until((events) => listRequests(events).length > 0);
      expect(listRequests(follower)).toMatchObject([
        { kind: "permission", tool_calls: [{ tool_call_id: "one" }, { tool_call_id: "two" }] },
      ]);
    }
    expect(["free", "denied", "one", "two"].map((name) => existsSync(join(home, name)))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    await world.restart();
    using follower = await Follower.open(owner, id);
    await follower.until((events) => listRequests(events).length > 0);
    expect(listRequests(follower)).toMatchObject([{ kind: "permission" }]);
    const results = [{ tool_call_id: "client", output: 1 }];
    expect((await owner.fetch("POST", `${path}/tool-results`, { results })).status).toBe(409);
    for (const invalid of [
      [],
      [{ tool_call_id: "one", decision: "allow" }],
      [
        { tool_call_id: "one", decision: "allow" },
        { tool_call_id: "client", decision: "allow" },
      ],
      [
        { tool_call_id: "one", decision: "allow", scope: "always", command: "a; b" },
        { tool_call_id: "two", decision: "deny" },
      ],
    ]) {
      expect(await sendAnswers(invalid)).toBe(400);
    }
    const answers = [
      { tool_call_id: "one", decision: "allow", scope: "always" },
      { tool_call_id: "two", decision: "deny" },
    ];
    expect(await sendAnswers(answers)).toBe(204);
    await follower.until((events) => listRequests(events).length > 1);
    expect(listRequests(follower).at(-1)).toEqual({
      tool_calls: [{ tool_call_id: "client", tool_name: "ask", args: "{}" }],
    });
    expect(["one", "two"].map((name) => existsSync(join(home, name)))).toEqual([true, false]);
    expect((await owner.get<Chat>(path)).permissions?.rules[0]).toEqual({
      tool: "execute",
      command: "touch one",
      action: "allow",
      exact: true,
    });
    await owner.post(`${path}/tool-results`, { results });
    const next = await world.models.next();
    const toolResults = (await listMessages(owner, id)).flatMap(({ role, content }) =>
      role === "tool" ? content : [],
    );
    expect(toolResults.map(({ tool_call_id, is_error }) => [tool_call_id, is_error])).toEqual([
      ["free", false],
      ["never", true],
      ["one", false],
      ["two", true],
      ["client", false],
    ]);
    // The answer is remembered, so the same call does not ask again. A call with another command does.
    const repeated = await callTools(world, next, ["execute", { command: "touch one", timeout: "60s" }]);
    expect(repeated.parts).toMatchObject([{ is_error: false }]);
    repeated.next.callTool("three", "execute", { command: "touch one; touch three" }).finish("tool_calls");
    await follower.until((events) => listRequests(events).length > 2);
    await owner.post(`${path}/interrupt`, {});
    const lastCall = await world.models.next();
    expect(lastCall.request.messages.at(-1)?.content).toMatchObject([{ tool_call_id: "three", is_error: true }]);
    await owner.patch(path, { permissions: null });
    expect(
      (await callTools(world, lastCall, ["execute", { command: "touch one; touch three", timeout: "60s" }])).parts,
    ).toMatchObject([{ is_error: false }]);
  },
  scaleTimeout(180_000),
);

test("[PE-18] a call waits for approval for the configured time", async () => {
  await using world = await openToolWorld({ env: { SLIPWAY_APPROVAL_TIMEOUT: "3h" } });
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  using follower = await Follower.open(world.owner, id);
  const startedAt = Date.now();
  call.callTool("one", "execute", { command: "touch one" }).finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const row = await getContext(world.server).store.get(findChat({ id }));
  const timeoutMs = (row?.requires_action_deadline ?? 0) - startedAt;
  expect(timeoutMs).toBeGreaterThanOrEqual(3 * 3_600_000);
  expect(timeoutMs).toBeLessThan(3 * 3_600_000 + 60_000);
});

test("[PE-9] new chats start with the user's rules unless the request contains rules; invalid rules are rejected", async () => {
  await using world = await openToolWorld();
  const { owner } = world;
  const ownPermissions = { default: "ask", rules: [] };
  await owner.put<unknown>("/api/v2/chats/config/user-permissions", { permissions: ownPermissions });
  expect(await owner.get<unknown>("/api/v2/chats/config/user-permissions")).toEqual({ permissions: ownPermissions });
  expect((await createChat(world)).permissions).toEqual(ownPermissions as Chat["permissions"]);
  expect((await createChat(world, "x", { permissions: null })).permissions).toBeUndefined();
  const invalidRules = [
    { tool: "", action: "allow" },
    { tool: "a*b", action: "allow" },
    { tool: "read_file", command: "x", action: "allow" },
    { tool: "execute", command: "a; b", action: "allow" },
    { tool: "exceute", action: "deny" },
    { tool: "Execute", action: "ask" },
    { tool: "execute", command: "", action: "allow" },
    { tool: "execute", action: "maybe" },
  ];
  for (const rule of invalidRules) {
    const body = { permissions: { default: "allow", rules: [rule] } };
    expect([rule, (await owner.fetch("PUT", "/api/v2/chats/config/user-permissions", body)).status]).toEqual([
      rule,
      400,
    ]);
  }
});
