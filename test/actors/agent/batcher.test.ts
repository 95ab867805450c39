// Messages that are queued together are processed in one batch.
import { expect, mock, test } from "bun:test";
import { Batcher, type Waiting } from "#actors/agent/batcher.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

type Group = Waiting<number, string>[];

/** Records batches; each one waits for `go` before it commits. */
const recorder = (most: number) => {
  const groups: number[][] = [];
  const turns: PromiseWithResolvers<void>[] = [];
  const idle = mock();
  const together = new Batcher<number, string>({
    cost: (item) => item,
    most,
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
  return { together, groups, turns, idle };
};

test("[LG-21] items that arrive while a batch runs share the next one, in order, each with its own answer", async () => {
  const { together, groups, turns, idle } = recorder(100);
  const first = together.add(1);
  while (!turns[0]) await nextTick();
  const rest = [2, 3, 4].map((item) => together.add(item));
  await nextTick();
  expect(groups).toEqual([[1]]);
  turns[0]?.resolve();
  expect(await first).toBe("stored 1");
  while (!turns[1]) await nextTick();
  expect(groups).toEqual([[1], [2, 3, 4]]);
  turns[1]?.resolve();
  expect(await Promise.all(rest)).toEqual(["stored 2", "stored 3", "stored 4"]);
  await together.whenDrained();
  expect(idle).toHaveBeenCalledTimes(1);
});

test("[LG-21] a group is bounded, but one large item goes alone", async () => {
  const { together, groups, turns } = recorder(10);
  const answers = [4, 5, 6, 50, 1].map((item) => together.add(item));
  for (let i = 0; i < 4; i++) {
    while (!turns[i]) await nextTick();
    turns[i]?.resolve();
  }
  await Promise.all(answers);
  expect(groups).toEqual([[4, 5], [6], [50], [1]]);
});

test("[LG-21] a failed commit refuses its whole group and no other", async () => {
  const { together, turns } = recorder(10);
  const answers = [5, 5, 7].map((item) => together.add(item).catch((error: Error) => error.message));
  while (!turns[0]) await nextTick();
  turns[0].reject(new Error("disk"));
  while (!turns[1]) await nextTick();
  turns[1].resolve();
  expect(await Promise.all(answers)).toEqual(["disk", "disk", "stored 7"]);
});

test("[LG-21] a batch that cannot start refuses all waiting items; too many waiting ones are refused immediately", async () => {
  const gate = Promise.withResolvers<() => void>();
  const idle = mock();
  const together = new Batcher<number, string>({ cost: () => 1, most: 1, run: () => gate.promise, idle });
  const answers = Array.from({ length: 300 }, (_, i) => together.add(i).catch((error: Error) => error.message));
  expect(await answers[299]).toBe("Too many requests are waiting for this resource.");
  gate.reject(new Error("no such agent"));
  expect(new Set(await Promise.all(answers.slice(0, 256)))).toEqual(new Set(["no such agent"]));
  expect(idle).toHaveBeenCalledTimes(1);
});
