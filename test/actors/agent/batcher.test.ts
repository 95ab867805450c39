// Messages that are queued together are processed in one batch.
import { expect, mock, test } from "bun:test";
import { Batcher, type Waiting } from "#actors/agent/batcher.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

type Group = Waiting<number, string>[];

/** Records batches; each one waits for `go` before it commits. */
const createRecorder = (maxCost: number) => {
  const groups: number[][] = [];
  const turns: PromiseWithResolvers<void>[] = [];
  const idle = mock();
  const batcher = new Batcher<number, string>({
    cost: (item) => item,
    maxCost,
    async run(take) {
      await nextTick();
      const group: Group = take();
      groups.push(group.map(({ item }) => item));
      const turn = Promise.withResolvers<void>();
      turns.push(turn);
      await turn.promise;
      return () => {
        for (const { item, resolve } of group) resolve(`stored ${item}`);
      };
    },
    idle,
  });
  return { batcher, groups, turns, idle };
};

test("[LG-21] items that arrive while a batch runs share the next one, in order, each with its own answer", async () => {
  const { batcher, groups, turns, idle } = createRecorder(100);
  const first = batcher.add(1);
  while (!turns[0]) await nextTick();
  const later = [2, 3, 4].map((item) => batcher.add(item));
  await nextTick();
  expect(groups).toEqual([[1]]);
  turns[0]?.resolve();
  expect(await first).toBe("stored 1");
  while (!turns[1]) await nextTick();
  expect(groups).toEqual([[1], [2, 3, 4]]);
  turns[1]?.resolve();
  expect(await Promise.all(later)).toEqual(["stored 2", "stored 3", "stored 4"]);
  await batcher.whenDrained();
  expect(idle).toHaveBeenCalledTimes(1);
});

test("[LG-21] a group is bounded, but one large item goes alone", async () => {
  const { batcher, groups, turns } = createRecorder(10);
  const answers = [4, 5, 6, 50, 1].map((item) => batcher.add(item));
  for (let i = 0; i < 4; i++) {
    while (!turns[i]) await nextTick();
    turns[i]?.resolve();
  }
  await Promise.all(answers);
  expect(groups).toEqual([[4, 5], [6], [50], [1]]);
});

test("[LG-21] a failed commit refuses its whole group and no other", async () => {
  const { batcher, turns } = createRecorder(10);
  const answers = [5, 5, 7].map((item) => batcher.add(item).catch((error: Error) => error.message));
  while (!turns[0]) await nextTick();
  turns[0].reject(new Error("disk"));
  while (!turns[1]) await nextTick();
  turns[1].resolve();
  expect(await Promise.all(answers)).toEqual(["disk", "disk", "stored 7"]);
});

test("[LG-21] a batch that cannot start refuses all waiting items; too many waiting ones are refused immediately", async () => {
  const gate = Promise.withResolvers<() => void>();
  const idle = mock();
  const batcher = new Batcher<number, string>({ cost: () => 1, maxCost: 1, run: () => gate.promise, idle });
  const answers = Array.from({ length: 300 }, (_, i) => batcher.add(i).catch((error: Error) => error.message));
  expect(await answers[299]).toBe("Too many requests are waiting for this resource.");
  gate.reject(new Error("no such agent"));
  expect(new Set(await Promise.all(answers.slice(0, 256)))).toEqual(new Set(["no such agent"]));
  expect(idle).toHaveBeenCalledTimes(1);
});
