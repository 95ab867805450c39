// Who may build an image now.
import { expect, test } from "bun:test";
import { BuildSlots } from "#src/provisioners/docker/build-slots.ts";

test("[RW-24] two images are built at a time, one for each person, and those waiting keep their order", async () => {
  const slots = new BuildSlots(2);
  const { signal } = new AbortController();
  const began: string[] = [];
  const takePlace = async (owner_id: string, as = owner_id, by = signal): Promise<Disposable> => {
    const slot = await slots.acquire(owner_id, by, () => began.push(`${as} waits`));
    began.push(as);
    return slot;
  };
  const ann = await takePlace("ann");
  const more = takePlace("ann", "ann's second");
  const gone = new AbortController();
  const given = takePlace("ann", "ann's third", gone.signal).catch((error: Error) => error.message);
  const bob = await takePlace("bob");
  const cid = takePlace("cid");
  expect(began).toEqual(["ann", "ann's second waits", "ann's third waits", "bob", "cid waits"]);
  gone.abort(new Error("cancelled"));
  expect(await given).toBe("cancelled");
  bob[Symbol.dispose]();
  const last = await cid;
  expect(began.at(-1)).toBe("cid");
  ann[Symbol.dispose]();
  (await more)[Symbol.dispose]();
  last[Symbol.dispose]();
  await expect(slots.acquire("dan", gone.signal, () => {})).rejects.toThrow("cancelled");
  (await takePlace("dan"))[Symbol.dispose]();
});
