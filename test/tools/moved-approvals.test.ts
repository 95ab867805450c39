// A chat that gets another workspace while a call waits for approval, or before an approved call has a result.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { NIL_UUID } from "#base/ids.ts";
import { findChat } from "#db/chats/chats.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { Follower, openChat, openToolWorld, type ToolWorld } from "./world.ts";

const MOVED = "The chat moved to another workspace";

const move = ({ owner }: ToolWorld, id: string, workspace_id: string) =>
  owner.patch<unknown>(`/api/v2/chats/${id}`, { workspace_id });

const sendAnswer = async ({ owner }: ToolWorld, id: string): Promise<number> => {
  const answers = [{ tool_call_id: "one", decision: "allow" }];
  return (await owner.fetch("POST", `/api/v2/chats/${id}/permissions`, { answers })).status;
};

test("[PE-19] a call that waits for approval does not run once its chat has moved, and the model continues", async () => {
  await using world = await openToolWorld();
  const { home, models, seeded } = world;
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  using follower = await Follower.open(world.owner, id);
  call.callTool("one", "execute", { command: "touch one" }).finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  await move(world, id, seeded.workspace_id);
  await move(world, id, NIL_UUID);
  expect(await sendAnswer(world, id)).toBe(409);
  await move(world, id, seeded.workspace_id);
  expect(await sendAnswer(world, id)).toBe(409);
  const { request } = await models.next();
  expect(JSON.stringify(request.messages.at(-1)?.content)).toContain(MOVED);
  expect(existsSync(join(home, "one"))).toBe(false);
});

test("[PE-19] a change that keeps the chat's workspace keeps its waiting call", async () => {
  await using world = await openToolWorld();
  const { home, models, seeded } = world;
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  using follower = await Follower.open(world.owner, id);
  call.callTool("one", "execute", { command: "touch one" }).finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  await move(world, id, seeded.workspace_id);
  expect(await sendAnswer(world, id)).toBe(204);
  await models.next();
  expect(existsSync(join(home, "one"))).toBe(true);
});

test("[PE-19][TO-8] an approved call that a restart interrupts does not run again in another workspace", async () => {
  await using world = await openToolWorld();
  const { home, models, owner, seeded } = world;
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  {
    using follower = await Follower.open(owner, id);
    call.callTool("one", "execute", { command: "touch begun; sleep 600", timeout: "20m" }).finish("tool_calls");
    await follower.until(({ status }) => status === "requires_action");
  }
  expect(await sendAnswer(world, id)).toBe(204);
  await until(() => existsSync(join(home, "begun")));
  await move(world, id, NIL_UUID);
  await move(world, id, seeded.workspace_id);
  // Earlier versions know only "refused", and do not run the call either.
  const chat = await getContext(world.server).store.get(findChat({ id }));
  expect(chat?.pending_calls).toMatchObject([{ permission: "refused", is_withdrawn: true }]);
  await world.restart();
  const { request } = await models.next();
  expect(JSON.stringify(request.messages.at(-1)?.content)).toContain(MOVED);
});
