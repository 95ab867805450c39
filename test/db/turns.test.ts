// Decides whose lists and reports run next.
import { expect, test } from "bun:test";
import { FairScheduler } from "#db/engine/turns.ts";

/** Starts work of several users that ends on request, and records the order in which it started. */
const createScheduler = (options: ConstructorParameters<typeof FairScheduler>[0]) => {
  const turns = new FairScheduler(options);
  const started: string[] = [];
  const finishers = new Map<string, () => void>();
  return {
    started,
    run: (user: string | undefined, name: string): Promise<string> =>
      turns
        .run(user, async () => {
          started.push(name);
          await new Promise<void>((resolve) => finishers.set(name, resolve));
          return name;
        })
        .catch((error: Error) => error.message),
    /** Resolves once the next step has begun. */
    async finish(name: string) {
      finishers.get(name)?.();
      await new Promise(setImmediate);
    },
    refuseAll: (error: Error) => turns.rejectAll(error),
  };
};

test("[ST-18] one person never has all slots, people take turns, and the server can use all slots", async () => {
  const { started, run, finish } = createScheduler({ slots: 2, maxPerUser: 1, limit: 100 });
  for (const name of ["a1", "a2", "a3"]) void run("ada", name);
  for (const name of ["b1", "b2"]) void run("bob", name);
  expect(started).toEqual(["a1", "b1"]);
  void run("cy", "c1");
  await finish("a1");
  expect(started).toEqual(["a1", "b1", "a2"]);
  await finish("b1");
  expect(started.at(-1)).toBe("b2");
  await finish("b2");
  expect(started.at(-1)).toBe("c1");
  await finish("a2");
  expect(started.at(-1)).toBe("a3");
  for (const name of ["c1", "a3"]) await finish(name);
  for (const name of ["s1", "s2", "s3"]) void run(undefined, name);
  expect(started.slice(-2)).toEqual(["s1", "s2"]);
  await finish("s1");
  expect(started.at(-1)).toBe("s3");
});

test("[ST-18] a full queue refuses the newest request of the person with the most requests", async () => {
  const { started, run, finish, refuseAll } = createScheduler({ slots: 1, maxPerUser: 1, limit: 4 });
  const [, , , lastRequest] = ["a1", "a2", "a3", "a4"].map((name) => run("ada", name));
  expect(await run("ada", "a5")).toBe("Too many queries are running. Please retry.");
  const bobsRequest = run("bob", "b1");
  expect(await lastRequest).toBe("Too many queries are running. Please retry.");
  await finish("a1");
  await finish("a2");
  expect(started).toEqual(["a1", "a2", "b1"]);
  const lateRequest = run("cy", "c1");
  refuseAll(new Error("over"));
  expect(await lateRequest).toBe("over");
  await finish("b1");
  expect(await bobsRequest).toBe("b1");
});
