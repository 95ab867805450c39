// Permissions of client tools: denied calls never reach the client, and other calls reach it once a person allows them.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ActionRequired } from "#schema/chats/chat-event.ts";
import { createChat } from "#test/support/chats.ts";
import { Follower, listMessages, openToolWorld, type Result } from "./world.ts";

const makeTool = (name: string) => ({ name, description: name, input_schema: { type: "object" } });
const listRequests = ({ events }: Follower): [string | undefined, string[]][] =>
  events.flatMap((event) => {
    if (event.type !== "action_required") return [];
    const { kind, tool_calls }: ActionRequired = event.action_required;
    return [[kind, tool_calls.map(({ tool_call_id }) => tool_call_id)]];
  });

test("[PE-10] rules apply to client tools: denied calls fail, others wait for approval, and only allowed calls reach the client", async () => {
  await using world = await openToolWorld();
  const { owner } = world;
  const permissions = {
    default: "allow",
    rules: [
      { tool: "send_*", action: "ask" },
      { tool: "drop_table", action: "deny" },
    ],
  };
  const unsafe_dynamic_tools = ["look", "send_mail", "send_fax", "drop_table"].map(makeTool);
  const { id } = await createChat(world, "go", { permissions, unsafe_dynamic_tools });
  const path = `/api/v2/chats/${id}`;
  const sendAnswers = (answers: object[]) => owner.fetch("POST", `${path}/permissions`, { answers });
  const sendResults = async (...ids: string[]): Promise<number> => {
    const results = ids.map((tool_call_id) => ({ tool_call_id, output: tool_call_id }));
    return (await owner.fetch("POST", `${path}/tool-results`, { results: results })).status;
  };
  const findResult = async (call: string): Promise<Result | undefined> => {
    const parts = (await listMessages(owner, id)).flatMap(({ role, content }) => (role === "tool" ? content : []));
    return parts.find(({ tool_call_id }) => tool_call_id === call)?.result as Result | undefined;
  };
  let call = await world.models.next();
  {
    using follower = await Follower.open(owner, id);
    call
      .callTool("look", "look", {})
      .callTool("mail", "send_mail", { to: "all" })
      .callTool("fax", "send_fax", {})
      .callTool("drop", "drop_table", {})
      .finish("tool_calls");
    await follower.until((events) => listRequests(events).length > 0);
    expect(listRequests(follower)).toEqual([["permission", ["mail", "fax"]]]);
    expect((await findResult("drop"))?.error).toContain("do not allow this call");
    // The client cannot answer instead of the person.
    expect(await sendResults("look", "mail", "fax")).toBe(409);
  }
  await world.restart();
  using follower = await Follower.open(owner, id);
  await follower.until((events) => listRequests(events).length > 0);
  const answered = await sendAnswers([
    { tool_call_id: "mail", decision: "allow", scope: "always" },
    { tool_call_id: "fax", decision: "deny" },
  ]);
  expect(answered.status).toBe(204);
  await follower.until((events) => listRequests(events).length > 1);
  expect(listRequests(follower).at(-1)).toEqual([undefined, ["look", "mail"]]);
  expect((await findResult("fax"))?.error).toContain("The user denied this call");
  expect(await sendResults("look", "mail", "fax")).toBe(400);
  expect(await sendResults("look", "mail")).toBe(204);
  expect((await owner.get<Chat>(path)).permissions?.rules[0]).toEqual({ tool: "send_mail", action: "allow" });

  // The answer is remembered, so the next call reaches the client immediately. Changed rules apply to later calls, and a step with only
  // denied calls continues.
  call = await world.models.next();
  call.callTool("again", "send_mail", {}).finish("tool_calls");
  await follower.until((events) => listRequests(events).length > 2);
  expect(listRequests(follower).at(-1)).toEqual([undefined, ["again"]]);
  await owner.patch(path, { permissions: { default: "deny", rules: [] } });
  expect(await sendResults("again")).toBe(204);
  call = await world.models.next();
  call.callTool("late", "look", {}).finish("tool_calls");
  call = await world.models.next();
  expect((await findResult("late"))?.error).toContain("do not allow this call");
  expect(await findResult("again")).toBe("again" as never);
  await owner.patch(path, { permissions: { default: "ask", rules: [] } });
  call.callTool("alone", "look", {}).finish("tool_calls");
  await follower.until((events) => listRequests(events).length > 3);
  expect(listRequests(follower).at(-1)).toEqual(["permission", ["alone"]]);
  expect((await sendAnswers([{ tool_call_id: "alone", decision: "allow" }])).status).toBe(204);
  await follower.until((events) => listRequests(events).length > 4);
  expect(listRequests(follower).at(-1)).toEqual([undefined, ["alone"]]);
  expect(await sendResults("alone")).toBe(204);
  (await world.models.next()).say("done").finish();
  await follower.until(({ status }) => status === "waiting");
});
