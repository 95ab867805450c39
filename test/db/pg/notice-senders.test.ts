// How many notices each node has sent, and whether they were received: pure.
import { expect, test } from "bun:test";
import { NoticeSenders, type SenderCheck } from "#db/pg/notices/sent-counts.ts";

const SILENCE_TIMEOUT_MS = 3_000;

/** Polls twice a second; nodes report these counts, one poll after the other. */
const makeSenders = () => {
  const senders = new NoticeSenders(SILENCE_TIMEOUT_MS);
  let now = 0;
  const see = (counts: Readonly<Record<number, number>>, sign = `${now}`): SenderCheck => {
    now += 500;
    const all = Object.entries(counts).map(([epoch, one]) => ({ epoch: Number(epoch), sent: one, sign }));
    return senders.see(all, now);
  };
  const hear = (epoch: number, n: number): void => senders.onNotice({ epoch, n, audit: true }, now);
  return { senders, see, hear };
};

test("[CL-51] equal counts, and a node that has sent nothing, cause no reload", () => {
  const { see, hear } = makeSenders();
  expect([see({ 7: 0, 8: 0 }), see({ 7: 0, 8: 0 })]).toEqual(["nothing", "nothing"]);
  hear(7, 1);
  hear(7, 2);
  expect([see({ 7: 2, 8: 0 }), see({ 7: 2, 8: 0 })]).toEqual(["nothing", "nothing"]);
  // The number of a rejected one is skipped.
  hear(7, 4);
  expect([see({ 7: 4, 8: 0 }), see({ 7: 4, 8: 0 })]).toEqual(["nothing", "nothing"]);
});

test("[CL-51] a notification that arrives shortly after its count is not missed; one that never arrives is reported once", () => {
  const { see, hear } = makeSenders();
  see({ 7: 0 });
  expect(see({ 7: 1 })).toBe("nothing");
  hear(7, 1);
  expect([see({ 7: 1 }), see({ 7: 2 })]).toEqual(["nothing", "nothing"]);
  expect([see({ 7: 2 }), see({ 7: 2 })]).toEqual(["missed", "nothing"]);
  expect([see({ 7: 3 }), see({ 7: 4 }), see({ 7: 4 }), see({ 7: 4 })]).toEqual([
    "nothing",
    "missed",
    "missed",
    "nothing",
  ]);
});

test("[CL-51] a new listener counts as up to date with everything announced so far", () => {
  const { senders, see } = makeSenders();
  see({ 7: 0 });
  see({ 7: 5 });
  senders.catchUp();
  expect([see({ 7: 5 }), see({ 7: 6 }), see({ 7: 6 })]).toEqual(["nothing", "nothing", "missed"]);
});

test("[CP-52] reports once that a node that has left, or is silent for three seconds, may have unsent notices", () => {
  const { see } = makeSenders();
  const findSilent = () => see({ 7: 0 }, "the same");
  const checks = Array.from({ length: 9 }, findSilent);
  expect(checks.filter((one) => one === "gone")).toEqual(["gone"]);
  expect(checks.indexOf("gone")).toBe(6);
  expect([see({}), see({})]).toEqual(["nothing", "nothing"]);
  expect([see({ 8: 0 }), see({ 8: 0, 9: 0 }), see({ 9: 0 }), see({ 9: 0 })]).toEqual([
    "nothing",
    "nothing",
    "gone",
    "nothing",
  ]);
});
