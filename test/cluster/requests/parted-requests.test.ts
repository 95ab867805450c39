// Work that belongs to a request with a shard, and the requests that a node waits for before handing over their shard.
import { expect, test } from "bun:test";
import { Mailbox, outsideTurn } from "#actors/runtime/mailbox.ts";
import { systemClock } from "#base/clock.ts";
import { PartedRequest, requestNow, runOutsideRequest, whileWaitingForOthers } from "#base/network/request-part.ts";
import { CommitError } from "#db/engine/store.ts";
import { errorResponse } from "#src/api/http/errors.ts";
import { Requests } from "#src/api/http/requests.ts";
import { until } from "#test/support/until.ts";

const partNow = (): number | undefined => requestNow()?.part;
const inRequest = <T>(part: number, work: () => Promise<T>): Promise<T> => new PartedRequest(part).run(work);
const never = (): Promise<never> => new Promise(() => {});

test("[CL-40] a handler and everything that it awaits belong to its request's shard, until it ends", async () => {
  const [timer, rest] = [Promise.withResolvers<number | undefined>(), Promise.withResolvers<void>()];
  let behind: Promise<number | undefined> | undefined;
  const seen = await inRequest(7, async () => {
    systemClock.after(1, () => void rest.promise.then(() => timer.resolve(partNow())));
    behind = rest.promise.then(partNow);
    await Promise.resolve();
    return [partNow(), await inRequest(8, async () => partNow()), partNow(), runOutsideRequest(partNow)];
  });
  expect(seen).toEqual([7, 8, 7, undefined]);
  rest.resolve();
  expect([partNow(), await behind, await timer.promise]).toEqual([undefined, undefined, undefined]);
});

test("[CL-40] actor messages belong to no request: neither to the sender's nor to the previous message's", async () => {
  const mailbox = new Mailbox();
  const gate = Promise.withResolvers<void>();
  const turn = async () => {
    await gate.promise;
    return partNow() ?? "none";
  };
  const asked = [1, 2].map((part) => inRequest(part, () => mailbox.run(turn)));
  gate.resolve();
  expect(await Promise.all(asked)).toEqual(["none", "none"]);
  expect(await inRequest(3, async () => outsideTurn(partNow))).toBeUndefined();
});

test("[CL-41] a request refused because its shard has moved goes to another node, unless part of it was or may be executed", async () => {
  const requests = new Requests(systemClock, 10);
  const moved = new CommitError("moved", "another node does this now");
  const after = async (work: (now: PartedRequest) => unknown, why: Error = moved): Promise<boolean> => {
    const request = new Request("http://node.test/", { method: "POST" });
    requests.belongs(request, 0);
    const response = await requests.run(request, async () => {
      await work(requestNow() as PartedRequest);
      return errorResponse(why, request);
    });
    expect(response.status).toBe(503);
    return requests.isOfAnother(request);
  };
  const isNothing = (error: unknown): boolean => error === moved;
  const failing = (error: Error) => (now: PartedRequest) =>
    now.changing(Promise.reject(error), isNothing).catch(() => {});
  expect(await after(() => {})).toBe(true);
  expect(await after(failing(moved))).toBe(true);
  expect(await after((now) => now.changing(Promise.resolve(), isNothing))).toBe(false);
  expect(await after(failing(new CommitError("unknown", "lost")))).toBe(false);
  expect(await after((now) => void now.changing(never(), isNothing))).toBe(false);
  expect(await after((now) => now.begin())).toBe(false);
  expect(await after(() => {}, new CommitError("overloaded", "too much waits"))).toBe(false);
});

test("[CL-42] a handover waits for requests of its shards that change something, and for no others", async () => {
  const requests = new Requests(systemClock, 100);
  const ends: (() => void)[] = [];
  const open = (method: string, place: number | "here", wait = <T>(work: () => Promise<T>) => work()) => {
    const request = new Request("http://node.test/", { method });
    const { promise, resolve } = Promise.withResolvers<Response>();
    ends.push(() => resolve(new Response()));
    requests.belongs(request, place);
    void requests.run(request, () => wait(() => promise));
    return { request, end: () => resolve(new Response()) };
  };
  open("POST", 8);
  open("POST", "here");
  open("GET", 7);
  open("POST", 7, whileWaitingForOthers);
  requests.exempt(open("POST", 7).request);
  await requests.left((part) => part === 7);

  const [one, two] = [open("POST", 7), open("DELETE", 7)];
  let isLeft = false;
  const left = requests
    .left((part) => part === 7)
    .then(() => {
      isLeft = true;
    });
  one.end();
  await until(() => requests.size === 6);
  expect(isLeft).toBe(false);
  two.end();
  await left;
  for (const end of ends) end();
  await until(() => requests.size === 0);
});
