// Requests that a spare can answer itself: database reads and pure code. It forwards everything else, including features added later.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { openEncryption } from "#base/encryption.ts";
import { passToActiveNode, readLocally } from "#base/network/local-reads.ts";
import { Outbound } from "#base/outbound.ts";
import { Primary } from "#db/pg/primary.ts";
import { ReadStore } from "#db/pg/read-store.ts";
import { openReads } from "#src/context/open-reads.ts";
import { tempDirectory, testConfig } from "#test/support/server.ts";

const open = (directory: string) =>
  openReads({
    config: testConfig(directory),
    clock: systemClock,
    store: new ReadStore(new Primary("postgres://user@127.0.0.1:1/nowhere"), passToActiveNode),
    encryption: openEncryption(directory),
  });

/** Returns true if a request that does this is answered here. */
const isAnswered = async (work: () => unknown): Promise<boolean> =>
  (await readLocally(async () => {
    // A handler that continues anyway changes nothing.
    await new Promise((resolve) => resolve(work())).catch(() => {});
    return true;
  })) === true;

test("[CL-21] reads on a spare have only the parts of the server's context that are equal on every node", async () => {
  using temp = tempDirectory();
  const reads = open(temp.path);
  const readable: string[] = [];
  for (const [name, member] of Object.entries(Object.getPrototypeOf(reads))) {
    if (typeof member !== "object" || member === null || member instanceof URL) continue;
    const touch = (): unknown => Object.keys(reads[name as keyof typeof reads] as object);
    if (await isAnswered(touch)) readable.push(name);
  }
  expect(readable.sort()).toEqual(["addresses", "clock", "config", "encryption", "requests", "store"]);
});

test("[CL-21] writes, actor messages, events, queue positions and outgoing requests are forwarded; the built-in worker is known locally", async () => {
  using temp = tempDirectory();
  const reads = open(temp.path);
  const outbound = new Outbound({ clock: systemClock, allowed: [] });
  // Captured when the routes are created, and used in a request.
  const { subscribe } = { subscribe: reads.topics.subscribe };
  for (const work of [
    () => reads.store.commit([]),
    () => reads.store.reserve("chats", 1),
    () => reads.chats.ask("some", "markRead", {}),
    () => subscribe("workspace", "some", () => {}),
    () => reads.jobs.position("some"),
    () => reads.jobs.workersFor({ region: "eu" }),
    () => outbound.fetch(new URL("https://example.com/")),
    () => reads.refused.note(new Request("http://x/"), 403, () => ({ target: {} as never, params: {} })),
  ]) {
    expect(await isAnswered(work)).toBe(false);
  }
  expect(await isAnswered(() => reads.jobs.workersFor({}))).toBe(true);
  expect(await isAnswered(() => subscribe("inbox", "some", () => {}))).toBe(true);
  expect(await isAnswered(() => reads.refused.note(new Request("http://x/"), 404, () => undefined))).toBe(true);
  expect(reads.jobs.workersFor({})).toEqual([reads.encryption.deriveUuid("built-in worker")]);
});
