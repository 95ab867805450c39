// Loading lists while events change their entries.
import { expect, test } from "bun:test";
import { ListRequests } from "../../src/web/app/data/list-requests.ts";

/** A list of values by ID. The test decides when each request is answered. */
const openList = () => {
  const requests = new ListRequests();
  let shown: Record<string, string> = {};
  return {
    shown: () => shown,
    handleEvent: (id: string, value: string): void => {
      requests.noteChange(id);
      shown = { ...shown, [id]: value };
    },
    request: () => {
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>();
      const done = requests.load(
        () => promise,
        (answer, isOutdated) => {
          const changed = Object.entries(shown).filter(([id]) => isOutdated(id));
          const loaded = Object.entries(answer).filter(([id]) => !isOutdated(id));
          shown = Object.fromEntries([...loaded, ...changed]);
        },
      );
      return { resolve, reject, done };
    },
  };
};

test("[WB-4] an answer does not overwrite an event that arrived after its request", async () => {
  const list = openList();
  const request = list.request();
  list.handleEvent("a", "allow");
  request.resolve({ a: "ask", b: "ask" });
  await request.done;
  expect(list.shown()).toEqual({ a: "allow", b: "ask" });
});

test("[WB-4] an answer replaces entries that changed before its request, and an older answer is ignored", async () => {
  const list = openList();
  list.handleEvent("a", "allow");
  const olderRequest = list.request();
  list.handleEvent("b", "allow");
  const newerRequest = list.request();
  newerRequest.resolve({ a: "plan", b: "plan" });
  await newerRequest.done;
  expect(list.shown()).toEqual({ a: "plan", b: "plan" });
  olderRequest.resolve({ a: "ask", b: "ask" });
  await olderRequest.done;
  expect(list.shown()).toEqual({ a: "plan", b: "plan" });
});

test("[WB-4] after a failed request the next one is applied", async () => {
  const list = openList();
  const failed = list.request();
  failed.reject(new Error("offline"));
  expect(await failed.done.catch((error: Error) => error.message)).toBe("offline");
  const next = list.request();
  next.resolve({ a: "ask" });
  await next.done;
  expect(list.shown()).toEqual({ a: "ask" });
});
