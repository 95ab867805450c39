// The actor runtime: mailbox, actor, directory, scheduler.

import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { Actor } from "#actors/runtime/actor.ts";
import { Directory, IDLE_TIMEOUT_MS } from "#actors/runtime/directory.ts";
import { MAX_WAITING_MESSAGES, Mailbox, runOutsideMailbox } from "#actors/runtime/mailbox.ts";
import { Scheduler } from "#actors/runtime/scheduler.ts";
import { SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import { type AppError, toErrorKind } from "#base/errors.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const createStore = (commit: () => Promise<void>): Store => ({ commit }) as unknown as Store;
const workingStore = createStore(async () => {});

test("[AC-1] messages run one at a time, in order; a message beyond the limit is refused as overloaded", async () => {
  const mailbox = new Mailbox();
  const gate = Promise.withResolvers<void>();
  const handled: number[] = [];
  const running = mailbox.run(() => gate.promise);
  const waiting = Array.from({ length: MAX_WAITING_MESSAGES }, (_, i) => mailbox.run(async () => void handled.push(i)));
  const refused = await mailbox.run(async () => {}).catch(toErrorKind);
  expect(refused).toBe("overloaded");
  gate.resolve();
  await Promise.all([running, ...waiting]);
  expect(handled).toEqual([...handled.keys()]);
  expect(mailbox.isIdle).toBe(true);
});

test("[AC-2] a handler that waits for its own mailbox is refused immediately; an effect may send to it", async () => {
  const mailbox = new Mailbox();
  const inner = mailbox.run(() => mailbox.run(async () => "never").catch((error: Error) => error.message));
  expect(await inner).toContain("cannot send itself a message");
  let effect: Promise<string> | undefined;
  await mailbox.run(async () => {
    effect = runOutsideMailbox(() => mailbox.run(async () => "done"));
  });
  expect(await effect).toBe("done");
});

class Counter extends Actor<number> {
  static loads = 0;
  protected toPart(): undefined {}
  protected load(): Promise<number> {
    Counter.loads += 1;
    return Promise.resolve(0);
  }
  add({ by, after }: { by: number; after?: () => void }): Promise<number> {
    return this.handle((state) => ({
      state: state + by,
      writes: [{ sql: "", rows: [[]] }],
      after,
      reply: state + by,
    }));
  }
  hold({ gate }: { gate: Promise<void> }): Promise<number> {
    return this.handle(async (state) => {
      await gate;
      return { state, reply: state };
    });
  }
}

test("[AC-3] nothing is announced or kept when the commit fails, and the next message reloads", async () => {
  let isBroken = false;
  const store = createStore(() => (isBroken ? Promise.reject(new CommitError("unknown", "lost")) : Promise.resolve()));
  const counter = new Counter("a", store);
  expect(await counter.add({ by: 1 })).toBe(1);
  const loads = Counter.loads;
  isBroken = true;
  let isAnnounced = false;
  const failed = await counter.add({ by: 1, after: () => (isAnnounced = true) }).catch((error: CommitError) => error);
  expect((failed as CommitError).reason).toBe("unknown");
  expect(isAnnounced).toBe(false);
  isBroken = false;
  expect(await counter.add({ by: 5 })).toBe(5);
  expect(Counter.loads).toBe(loads + 1);
});

test("[AC-4] an idle actor is evicted; an actor that handles a message stays, and no message is lost", async () => {
  const clock = new ManualClock();
  const directory = new Directory((id) => new Counter(id, workingStore), clock);
  await directory.ask("a", "add", { by: 1 });
  const gate = Promise.withResolvers<void>();
  const busy = directory.ask("b", "hold", { gate: gate.promise });
  clock.advance(IDLE_TIMEOUT_MS);
  directory.sweep();
  expect(directory.size).toBe(1);
  const waiting = directory.ask("b", "add", { by: 2 });
  gate.resolve();
  await busy;
  expect(await waiting).toBe(2);
  const [first, second] = await Promise.all([
    directory.ask("a", "add", { by: 3 }),
    directory.ask("a", "add", { by: 4 }),
  ]);
  expect([first, second]).toEqual([3, 7]);
});

test("[AC-8] above the limit, each new actor evicts an idle one; busy actors and actors with unstored state stay", async () => {
  class ConnectedCounter extends Counter {
    protected override hasUnstoredState(state: number): boolean {
      return state === 7;
    }
  }
  const clock = new ManualClock();
  const directory = new Directory((id) => new ConnectedCounter(id, workingStore), clock, { most: 3 });
  const gate = Promise.withResolvers<void>();
  const busy = directory.ask("at work", "hold", { gate: gate.promise });
  await directory.ask("connected", "add", { by: 7 });
  const sums: number[] = [];
  for (let i = 0; i < 20; i++) {
    clock.advance(1);
    sums.push(await directory.ask(`${i}`, "add", { by: 1 }));
  }
  expect(sums).toEqual(Array(20).fill(1));
  expect(directory.size).toBeLessThanOrEqual(5);
  // Neither was recreated: their counters continue.
  gate.resolve();
  await busy;
  expect(await directory.ask("at work", "add", { by: 2 })).toBe(2);
  expect(await directory.ask("connected", "add", { by: 1 })).toBe(8);
});

test("[AC-5] 100,000 known actors are not 100,000 live queues", async () => {
  const clock = new ManualClock();
  const directory = new Directory((id) => new Counter(id, workingStore), clock);
  const before = heapBytes();
  for (let i = 0; i < 100; i++) {
    await Promise.all(Array.from({ length: 1_000 }, (_, j) => directory.ask(`${i}-${j}`, "add", { by: 1 })));
  }
  expect(directory.size).toBe(100_000);
  const perActor = (heapBytes() - before) / 100_000;
  expect(perActor).toBeLessThan(600);
  clock.advance(IDLE_TIMEOUT_MS);
  directory.sweep();
  expect(directory.size).toBe(0);
});

const heapBytes = (): number => {
  Bun.gc(true);
  return heapStats().heapSize;
};

test("[AC-6] a stopping directory refuses new messages and answers waiting ones", async () => {
  const directory = new Directory((id) => new Counter(id, workingStore), new ManualClock());
  const gate = Promise.withResolvers<void>();
  const busy = directory.ask("a", "hold", { gate: gate.promise });
  const waiting = directory.ask("a", "add", { by: 1 });
  const stopped = directory.stop();
  const refused = await directory.ask("a", "add", { by: 1 }).catch((error: AppError) => error.kind);
  expect(refused).toBe("overloaded");
  gate.resolve();
  await stopped;
  expect([await busy, await waiting]).toEqual([0, 1]);
});

test("[AC-7] a due timer is delivered until its actor has cleared it, never twice concurrently, and again after a failure", async () => {
  using temp = tempDirectory();
  const clock = new ManualClock();
  const store = openLocalStore({ directory: temp.path, cacheMb: 4, now: clock.now(), fatal: () => {} });
  const delivered: string[] = [];
  let fails = true;
  const scheduler = new Scheduler(
    store,
    clock,
    async ({ actor, actor_id, name }) => {
      delivered.push(`${actor}/${actor_id}/${name}`);
      if (fails) throw new Error("not now");
      await store.commit([clearTimer(actor, actor_id, name)]);
    },
    () => {},
  );
  await store.commit([setTimer("workspace", "a", "reap", clock.now() + 1_000)]);
  await scheduler.tick();
  expect(delivered).toEqual([]);
  clock.advance(1_000);
  await Promise.all([scheduler.tick(), scheduler.tick()]);
  expect(delivered).toHaveLength(1);
  fails = false;
  await scheduler.tick();
  expect(delivered).toHaveLength(1);
  clock.advance(30_000);
  await scheduler.tick();
  expect(delivered).toHaveLength(2);
  clock.advance(30_000);
  await scheduler.tick();
  expect(delivered).toHaveLength(2);
  await store.close();
});

test("[SN-23] each user has one copy in progress, regardless of how many they request", async () => {
  const started: string[] = [];
  const finishById = new Map<string, () => void>();
  const capture = async ({ snapshot_id }: { snapshot_id: string }) => {
    started.push(snapshot_id);
    await new Promise<void>((resolve) => finishById.set(snapshot_id, resolve));
    return { method: "archive", bytes: 0 };
  };
  const runner = new SnapshotRunner({
    clock: new ManualClock(),
    provisioners: new Map([["local", { homes: { capture } }]]) as never,
    workspaces: () => ({ ask: async () => {} }) as never,
    fetch: () => Promise.reject(new Error("none is fetched")),
    module: { load: () => Promise.reject(new Error("there is no module")), loadMade: async () => undefined },
  });
  for (const snapshot_id of ["ann 1", "ann 2", "ann 3", "bob 1", "bob 2", "eve 1"]) {
    const owner_id = snapshot_id.slice(0, 3);
    runner.capture({
      owner_id,
      workspace_id: snapshot_id,
      snapshot_id,
      provisioner: "local",
      home_backup_id: null,
      part: 0,
    });
  }
  expect(started).toEqual(["ann 1", "bob 1"]);
  // A hanging copy only occupies one slot.
  for (const [ended, next] of [
    ["ann 1", "eve 1"],
    ["eve 1", "ann 2"],
    ["ann 2", "ann 3"],
    ["bob 1", "bob 2"],
  ] as const) {
    finishById.get(ended)?.();
    await until(() => started.at(-1) === next, { what: next });
  }
  finishById.get("ann 3")?.();
  finishById.get("bob 2")?.();
  await runner.stop();
});
