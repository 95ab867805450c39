// Messages that are queued together are processed in one batch.
import { expect, mock, test } from "bun:test";
import { Batcher, type Waiting } from "#actors/agent/batcher.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

type Group = Waiting<number, string>[];

/** Records batches. Each batch waits until the test resolves its gate before it commits. */
const createRecorder = (maxCost: number) => {
  const groups: number[][] = [];
  const gates: PromiseWithResolvers<void>[] = [];
  const idle = mock();
  const batcher = new Batcher<number, string>({
    cost: (item) => item,
    maxCost,
    async run(take) {
      await nextTick();
      const group: Group = take();
      groups.push(group.map(({ item }) => item));
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      return () => {
        for (const { item, resolve } of group) resolve(`stored ${item}`);
      };
    },
    idle,
  });
  return { batcher, groups, gates, idle };
};

test("[LG-21] items that arrive during a batch share the next batch, in order, and each gets its own answer", async () => {
  const { batcher, groups, gates, idle } = createRecorder(100);
  const first = batcher.add(1);
  while (!gates[0]) await nextTick();
  const later = [2, 3, 4].map((item) => batcher.add(item));
  await nextTick();
  expect(groups).toEqual([[1]]);
  gates[0]?.resolve();
  expect(await first).toBe("stored 1");
  while (!gates[1]) await nextTick();
  expect(groups).toEqual([[1], [2, 3, 4]]);
  gates[1]?.resolve();
  expect(await Promise.all(later)).toEqual(["stored 2", "stored 3", "stored 4"]);
  await batcher.whenDrained();
  expect(idle).toHaveBeenCalledTimes(1);
});

test("[LG-21] the cost of a group is bounded, and an item above the bound is a group of its own", async () => {
  const { batcher, groups, gates } = createRecorder(10);
  const answers = [4, 5, 6, 50, 1].map((item) => batcher.add(item));
  for (let i = 0; i < 4; i++) {
    while (!gates[i]) await nextTick();
    gates[i]?.resolve();
  }
  await Promise.all(answers);
  expect(groups).toEqual([[4, 5], [6], [50], [1]]);
});

test("[LG-21] a failed commit refuses its whole group and no other", async () => {
  const { batcher, gates } = createRecorder(10);
  const answers = [5, 5, 7].map((item) => batcher.add(item).catch((error: Error) => error.message));
  while (!gates[0]) await nextTick();
  gates[0].reject(new Error("disk"));
  while (!gates[1]) await nextTick();
  gates[1].resolve();
  expect(await Promise.all(answers)).toEqual(["disk", "disk", "stored 7"]);
});

test("[LG-21] a batch that cannot start refuses all waiting items; items above the limit are refused immediately", async () => {
  const gate = Promise.withResolvers<() => void>();
  const idle = mock();
  const batcher = new Batcher<number, string>({ cost: () => 1, maxCost: 1, run: () => gate.promise, idle });
  const answers = Array.from({ length: 300 }, (_, i) => batcher.add(i).catch((error: Error) => error.message));
  expect(await answers[299]).toBe("Too many requests are waiting for this resource.");
  gate.reject(new Error("no such agent"));
  expect(new Set(await Promise.all(answers.slice(0, 256)))).toEqual(new Set(["no such agent"]));
  expect(idle).toHaveBeenCalledTimes(1);
});
