// The limit and the order of concurrent image builds.
import { expect, test } from "bun:test";
import { BuildSlots } from "#src/provisioners/docker/build-slots.ts";

test("[RW-24] builds two images at a time, one for each person, and keeps the order of waiting builds", async () => {
  const slots = new BuildSlots(2);
  const { signal } = new AbortController();
  const events: string[] = [];
  const acquireSlot = async (owner_id: string, label = owner_id, abort = signal): Promise<Disposable> => {
    const slot = await slots.acquire(owner_id, abort, () => events.push(`${label} waits`));
    events.push(label);
    return slot;
  };
  const ann = await acquireSlot("ann");
  const second = acquireSlot("ann", "ann's second");
  const controller = new AbortController();
  const third = acquireSlot("ann", "ann's third", controller.signal).catch((error: Error) => error.message);
  const bob = await acquireSlot("bob");
  const cid = acquireSlot("cid");
  expect(events).toEqual(["ann", "ann's second waits", "ann's third waits", "bob", "cid waits"]);
  controller.abort(new Error("cancelled"));
  expect(await third).toBe("cancelled");
  bob[Symbol.dispose]();
  const last = await cid;
  expect(events.at(-1)).toBe("cid");
  ann[Symbol.dispose]();
  (await second)[Symbol.dispose]();
  last[Symbol.dispose]();
  await expect(slots.acquire("dan", controller.signal, () => {})).rejects.toThrow("cancelled");
  (await acquireSlot("dan"))[Symbol.dispose]();
});
