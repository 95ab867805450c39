// Messages to actors that may be on another node, which a second directory simulates.
import { expect, test } from "bun:test";
import { Actor } from "#actors/runtime/actor.ts";
import { Directory } from "#actors/runtime/directory.ts";
import type { ActorLocation, RemoteActors } from "#actors/runtime/remote-asks.ts";
import { AppError, conflict, NotStartedError } from "#base/errors.ts";
import type { Store } from "#db/engine/store.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const OTHER = { id: "other", address: "192.0.2.1:1" };

class Notes extends Actor<readonly string[]> {
  /** Notes are in no shard. */
  protected toPart(): undefined {}
  protected load(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }
  note({ text }: { text: string }): Promise<readonly string[]> {
    return this.handle((state) => {
      if (text === "bad") throw conflict("No.");
      const next = [...state, text];
      return { state: next, reply: next };
    });
  }
}

/** Returns the directories of a node and of the other node. `target.location` is the location of the actors. */
const createNodes = (overrides: Partial<RemoteActors> = {}) => {
  const clock = new ManualClock();
  const target: { location: ActorLocation | Promise<ActorLocation>; lookupCount: number } = {
    location: "here",
    lookupCount: 0,
  };
  const createNotes = (id: string) => new Notes(id, {} as Store);
  const otherNode = new Directory(createNotes, clock);
  const remote: RemoteActors = {
    locate() {
      target.lookupCount += 1;
      return target.location;
    },
    ask: (_, id, message, args) => otherNode.askHere(id, message as "note", args as { text: string }),
    // Announces the shards of new entities; notes have none.
    expect() {},
    ...overrides,
  };
  const thisNode = new Directory(createNotes, clock, { remote });
  return { clock, target, thisNode, otherNode };
};

const catchError = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error) => error,
  );

test("[CP-33] a message reaches its actor's node, and errors are returned from there", async () => {
  const { target, thisNode, otherNode } = createNodes();
  expect(await thisNode.ask("a", "note", { text: "1" })).toEqual(["1"]);
  target.location = OTHER;
  expect(await thisNode.ask("a", "note", { text: "2" })).toEqual(["2"]);
  expect(await catchError(thisNode.ask("a", "note", { text: "bad" }))).toMatchObject({ kind: "conflict" });
  expect([thisNode.size, otherNode.size]).toEqual([1, 1]);
});

test("[CP-33] messages keep their order while their actor's node is looked up", async () => {
  const { target, thisNode } = createNodes();
  const lookup = Promise.withResolvers<ActorLocation>();
  target.location = lookup.promise;
  const firstReply = thisNode.ask("a", "note", { text: "1" });
  target.location = OTHER;
  const secondReply = thisNode.ask("a", "note", { text: "2" });
  const otherActorReply = thisNode.ask("b", "note", { text: "other" });
  // Other actors do not have to wait.
  expect(await otherActorReply).toEqual(["other"]);
  lookup.resolve(OTHER);
  expect(await secondReply).toEqual(["1", "2"]);
  expect(await firstReply).toEqual(["1"]);
  expect(await thisNode.ask("a", "note", { text: "3" })).toEqual(["1", "2", "3"]);
});

test("[CP-33] while no node has an actor's shard, its messages wait for at most fifteen seconds", async () => {
  const { target, clock, thisNode } = createNodes();
  target.location = "moving";
  const delayed = [thisNode.ask("a", "note", { text: "1" }), thisNode.ask("a", "note", { text: "2" })];
  for (let i = 0; i < 100; i++) {
    await clock.timerIn(50);
    clock.advance(50);
  }
  target.location = OTHER;
  expect(await Promise.all(delayed)).toEqual([["1"], ["1", "2"]]);

  target.location = "moving";
  let isAnswered = false;
  const rejected = catchError(thisNode.ask("a", "note", { text: "3" })).finally(() => {
    isAnswered = true;
  });
  let waited = 0;
  while (!isAnswered) {
    await Promise.race([clock.timerIn(50), rejected]);
    if (isAnswered) break;
    clock.advance(50);
    waited += 50;
  }
  expect(await rejected).toMatchObject({ kind: "overloaded", retry_after: 1 });
  expect(await rejected).not.toBeInstanceOf(NotStartedError);
  expect(waited).toBeLessThanOrEqual(15_100);
});

test("[CP-33] a message that never started is resent to the actor's current node, one that may have started is not", async () => {
  let attemptCount = 0;
  const { target, clock, thisNode } = createNodes({
    ask() {
      attemptCount += 1;
      return Promise.reject(attemptCount < 3 ? new NotStartedError("gone") : new AppError("internal", "unknown"));
    },
  });
  target.location = OTHER;
  const failed = catchError(thisNode.ask("a", "note", { text: "1" }));
  for (let i = 0; i < 2; i++) {
    await clock.timerIn(50);
    clock.advance(50);
  }
  expect(await failed).toMatchObject({ kind: "internal" });
  expect(attemptCount).toBe(3);
  attemptCount = 0;
  const reply = thisNode.ask("a", "note", { text: "1" });
  await clock.timerIn(50);
  target.location = "here";
  clock.advance(50);
  expect(await reply).toEqual(["1"]);
});

test("[CP-33] a stopping directory answers all waiting callers", async () => {
  const { target, clock, thisNode } = createNodes();
  target.location = "moving";
  const waiting = catchError(thisNode.ask("a", "note", { text: "1" }));
  await clock.timerIn(50);
  await thisNode.stop();
  clock.advance(50);
  expect(await waiting).toMatchObject({ kind: "overloaded" });
});
