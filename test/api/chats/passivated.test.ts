// A chat that leaves memory at the moment a message arrives: at every step of the first message's processing, idle actors are removed and a
// second message arrives. Both are stored, once (RELIABILITY check 11).
import { expect } from "bun:test";
import { IDLE_TIMEOUT_MS } from "#actors/runtime/directory.ts";
import { createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

/** Steps of processing one message, from its call to its answer and beyond. */
const STEPS = 30;

testInside("[CH-10] a chat that is evicted while a message arrives handles every message once", async () => {
  const clock = new ManualClock();
  await using world = await openChatWorld({ clock });
  const { context } = world.server;
  if (!context) throw new Error("the test sweeps a server of this process");
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
  await until(isQuiet);
  for (let step = 0; step < STEPS; step++) {
    clock.advance(IDLE_TIMEOUT_MS);
    chats.sweep();
    expect(chats.size).toBe(0);
    const first = send(`${step} first`);
    for (let n = 0; n < step; n++) {
      if (n % 6 === 5) await new Promise((resolve) => setImmediate(resolve));
      else await Promise.resolve();
    }
    clock.advance(IDLE_TIMEOUT_MS);
    chats.sweep();
    await Promise.all([first, send(`${step} second`)]);
    texts.push(`${step} first`, `${step} second`);
    for (const _ of [1, 2]) (await world.models.next()).finish();
    await follower.until(({ status, queue, messages }) => {
      return status === "waiting" && queue.length === 0 && messages.size === 2 * texts.length;
    });
    // The turn may be about to end when its last status is published.
    await until(isQuiet);
  }
  function isQuiet(): boolean {
    clock.advance(IDLE_TIMEOUT_MS);
    chats.sweep();
    return chats.size === 0;
  }
  expect(follower.history).toEqual(texts.flatMap((text) => [`user: ${text}`, "assistant: Done."]));
  expect(world.models.calls).toHaveLength(texts.length);
});
