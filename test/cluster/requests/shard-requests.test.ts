// The shard that running work is attributed to, and the requests that a node waits for before it hands over their shard.
import { expect, test } from "bun:test";
import { Mailbox, runOutsideMailbox } from "#actors/runtime/mailbox.ts";
import { systemClock } from "#base/clock.ts";
import {
  getCurrentRequest,
  runOutsideRequest,
  runWhileWaiting,
  TrackedRequest,
} from "#base/network/current-request.ts";
import { CommitError } from "#db/engine/store.ts";
import { errorResponse } from "#src/api/http/errors.ts";
import { Requests } from "#src/api/http/requests.ts";
import { until } from "#test/support/until.ts";

const currentShard = (): number | undefined => getCurrentRequest()?.part;
const runInRequest = <T>(shard: number, work: () => Promise<T>): Promise<T> => new TrackedRequest(shard).run(work);
const neverResolves = (): Promise<never> => new Promise(() => {});

test("[CL-40] a handler and everything that it awaits belong to its request's shard, until it ends", async () => {
  const [timer, requestEnded] = [Promise.withResolvers<number | undefined>(), Promise.withResolvers<void>()];
  let resultAfterEnd: Promise<number | undefined> | undefined;
  const shards = await runInRequest(7, async () => {
    systemClock.after(1, () => void requestEnded.promise.then(() => timer.resolve(currentShard())));
    resultAfterEnd = requestEnded.promise.then(currentShard);
    await Promise.resolve();
    return [
      currentShard(),
      await runInRequest(8, async () => currentShard()),
      currentShard(),
      runOutsideRequest(currentShard),
    ];
  });
  expect(shards).toEqual([7, 8, 7, undefined]);
  requestEnded.resolve();
  expect([currentShard(), await resultAfterEnd, await timer.promise]).toEqual([undefined, undefined, undefined]);
});

test("[CL-40] actor messages belong to no request: neither to the sender's nor to the previous message's", async () => {
  const mailbox = new Mailbox();
  const gate = Promise.withResolvers<void>();
  const turn = async () => {
    await gate.promise;
    return currentShard() ?? "none";
  };
  const results = [1, 2].map((shard) => runInRequest(shard, () => mailbox.run(turn)));
  gate.resolve();
  expect(await Promise.all(results)).toEqual(["none", "none"]);
  expect(await runInRequest(3, async () => runOutsideMailbox(currentShard))).toBeUndefined();
});

test("[CL-41] a request whose shard has moved goes to another node, unless part of it was, or may have been, executed", async () => {
  const requests = new Requests(systemClock, 10);
  const moved = new CommitError("moved", "another node does this now");
  const isRetriedAfter = async (work: (tracked: TrackedRequest) => unknown, error: Error = moved): Promise<boolean> => {
    const request = new Request("http://node.test/", { method: "POST" });
    requests.assign(request, 0);
    const response = await requests.run(request, async () => {
      await work(getCurrentRequest() as TrackedRequest);
      return errorResponse(error, request);
    });
    expect(response.status).toBe(503);
    return requests.belongsElsewhere(request);
  };
  const hasWrittenNothing = (error: unknown): boolean => error === moved;
  const failChanging = (error: Error) => (tracked: TrackedRequest) =>
    tracked.trackChange(Promise.reject(error), hasWrittenNothing).catch(() => {});
  expect(await isRetriedAfter(() => {})).toBe(true);
  expect(await isRetriedAfter(failChanging(moved))).toBe(true);
  expect(await isRetriedAfter((tracked) => tracked.trackChange(Promise.resolve(), hasWrittenNothing))).toBe(false);
  expect(await isRetriedAfter(failChanging(new CommitError("unknown", "lost")))).toBe(false);
  expect(await isRetriedAfter((tracked) => void tracked.trackChange(neverResolves(), hasWrittenNothing))).toBe(false);
  expect(await isRetriedAfter((tracked) => tracked.begin())).toBe(false);
  expect(await isRetriedAfter(() => {}, new CommitError("overloaded", "too many requests are waiting"))).toBe(false);
});

test("[CL-42] a handover waits for requests of its shards that change something, and for no others", async () => {
  const requests = new Requests(systemClock, 100);
  const endRequests: (() => void)[] = [];
  const open = (method: string, destination: number | "here", runWork = <T>(work: () => Promise<T>) => work()) => {
    const request = new Request("http://node.test/", { method });
    const { promise, resolve } = Promise.withResolvers<Response>();
    endRequests.push(() => resolve(new Response()));
    requests.assign(request, destination);
    void requests.run(request, () => runWork(() => promise));
    return { request, end: () => resolve(new Response()) };
  };
  open("POST", 8);
  open("POST", "here");
  open("GET", 7);
  open("POST", 7, runWhileWaiting);
  requests.exempt(open("POST", 7).request);
  await requests.waitUntilDrained((shard) => shard === 7);

  const [firstRequest, secondRequest] = [open("POST", 7), open("DELETE", 7)];
  let isHandedOver = false;
  const handover = requests
    .waitUntilDrained((shard) => shard === 7)
    .then(() => {
      isHandedOver = true;
    });
  firstRequest.end();
  await until(() => requests.size === 6);
  expect(isHandedOver).toBe(false);
  secondRequest.end();
  await handover;
  for (const endRequest of endRequests) endRequest();
  await until(() => requests.size === 0);
});
