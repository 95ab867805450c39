// A chat that is evicted from memory while a message arrives: at every step of processing a first message, idle actors are evicted and a
// second message arrives. Both are stored once (RELIABILITY check 11).
import { expect } from "bun:test";
import { IDLE_TIMEOUT_MS } from "#actors/runtime/directory.ts";
import { createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

/** Number of steps at which the second message arrives: from the first message's model call until after its answer. */
const STEPS = 30;

testInProcess("[CH-10] a chat that is evicted while a message arrives handles every message once", async () => {
  const clock = new ManualClock();
  await using world = await openChatWorld({ clock });
  const { context } = world.server;
  if (!context) throw new Error("the test needs a server in this process");
  const { chats } = context;
  const { id } = await createChat(world, "begin");
  (await world.models.next()).finish();
  using follower = await Follower.open(world.owner, id);
  await follower.until(({ status }) => status === "waiting");
  const send = (text: string) =>
    chats.ask(id, "send", {
      content: [{ type: "text", text }],
      created_by: world.user_id,
      model_config_id: null,
      reasoning_effort: "",
      behavior: "queue",
      patch: {},
    });
  const texts = ["begin"];
  await until(isEvicted);
  for (let step = 0; step < STEPS; step++) {
    clock.advance(IDLE_TIMEOUT_MS);
    chats.sweep();
    expect(chats.size).toBe(0);
    const firstReply = send(`${step} first`);
    for (let tick = 0; tick < step; tick++) {
      if (tick % 6 === 5) await new Promise((resolve) => setImmediate(resolve));
      else await Promise.resolve();
    }
    clock.advance(IDLE_TIMEOUT_MS);
    chats.sweep();
    await Promise.all([firstReply, send(`${step} second`)]);
    texts.push(`${step} first`, `${step} second`);
    for (const _ of [1, 2]) (await world.models.next()).finish();
    await follower.until(({ status, queue, messages }) => {
      return status === "waiting" && queue.length === 0 && messages.size === 2 * texts.length;
    });
    // The turn may be about to end when its last status is published.
    await until(isEvicted);
  }
  function isEvicted(): boolean {
    clock.advance(IDLE_TIMEOUT_MS);
    chats.sweep();
    return chats.size === 0;
  }
  expect(follower.history).toEqual(texts.flatMap((text) => [`user: ${text}`, "assistant: Done."]));
  expect(world.models.calls).toHaveLength(texts.length);
});
