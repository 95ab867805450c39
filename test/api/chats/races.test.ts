// Two things at the same moment: whichever comes first, the outcome is one of those that the table allows, and nothing is lost or doubled.
import { expect, test } from "bun:test";
import { createChat, Follower, openChatWorld, said, sendMessage } from "#test/support/chats.ts";

test("[CH-41] two answers to the same calls: one counts, the other is refused", async () => {
  await using world = await openChatWorld();
  const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const { id } = await createChat(world, "go", { unsafe_dynamic_tools });
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).callTool("c1", "ask").finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const answer = async (output: string) => {
    const results = [{ tool_call_id: "c1", output }];
    return (await world.owner.fetch("POST", `/api/v2/chats/${id}/tool-results`, { results })).status;
  };
  expect((await Promise.all([answer("a"), answer("b")])).sort()).toEqual([204, 409]);
  const call = await world.models.next();
  expect(call.request.messages.filter(({ role }) => role === "tool").length).toBe(1);
});

test("[CH-41] an interrupt against the last word: the words are there once, whoever was first", async () => {
  await using world = await openChatWorld();
  for (let round = 0; round < 10; round++) {
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    const call = await world.models.next();
    call.say("all of it");
    await follower.until(({ preview }) => preview === "all of it");
    const stopping = world.owner.fetch("POST", `/api/v2/chats/${id}/interrupt`);
    if (round % 2 === 0) await Promise.resolve();
    call.finish();
    expect([200, 409]).toContain((await stopping).status);
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history).toEqual(["user: go", "assistant: all of it"]);
  }
});

test("[CH-41] archive against send: never both", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).finish();
  await follower.until(({ status }) => status === "waiting");
  const path = `/api/v2/chats/${id}`;
  const both = await Promise.all([
    world.owner.fetch("PATCH", path, { archived: true }),
    world.owner.fetch("POST", `${path}/messages`, { content: said("more") }),
  ]);
  expect(["204,400", "409,200"]).toContain(both.map(({ status }) => status).join());
});

test("[CH-41] promote against the end of the turn: every queued message is sent once", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  using follower = await Follower.open(world.owner, id);
  const call = await world.models.next();
  await sendMessage(world, id, "a");
  const { queued_message } = await sendMessage(world, id, "b");
  const promoting = world.owner.fetch("POST", `/api/v2/chats/${id}/queue/${queued_message?.id}/promote`);
  call.finish();
  expect([202, 404, 409]).toContain((await promoting).status);
  const settle = async (): Promise<void> => {
    for (;;) (await world.models.next()).finish();
  };
  void settle();
  await follower.until(
    ({ status, queue, messages }) => status === "waiting" && queue.length === 0 && messages.size > 2,
  );
  expect(follower.history.slice(1).sort()).toEqual(["user: a", "user: b"]);
});
