// Detects missed notices from the numbers of notices that nodes have sent.
import { expect, test } from "bun:test";
import { NoticeSenders, type SenderCheck } from "#db/pg/notices/sent-counts.ts";

const SILENCE_TIMEOUT_MS = 3_000;

/** Creates the detector. `poll` passes the counts that nodes report, twice a second; `receive` passes a received notice. */
const makeSenders = () => {
  const senders = new NoticeSenders(SILENCE_TIMEOUT_MS);
  let now = 0;
  const poll = (counts: Readonly<Record<number, number>>, sign = `${now}`): SenderCheck => {
    now += 500;
    const reports = Object.entries(counts).map(([epoch, sent]) => ({ epoch: Number(epoch), sent, sign }));
    return senders.see(reports, now);
  };
  const receive = (epoch: number, n: number): void => senders.onNotice({ epoch, n, audit: true }, now);
  return { senders, poll, receive };
};

test("[CL-51] equal counts, and a node that has sent nothing, cause no reload", () => {
  const { poll, receive } = makeSenders();
  expect([poll({ 7: 0, 8: 0 }), poll({ 7: 0, 8: 0 })]).toEqual(["nothing", "nothing"]);
  receive(7, 1);
  receive(7, 2);
  expect([poll({ 7: 2, 8: 0 }), poll({ 7: 2, 8: 0 })]).toEqual(["nothing", "nothing"]);
  // The number of a rejected notice is skipped.
  receive(7, 4);
  expect([poll({ 7: 4, 8: 0 }), poll({ 7: 4, 8: 0 })]).toEqual(["nothing", "nothing"]);
});

test("[CL-51] a notice that arrives shortly after its count is not missed; one that never arrives is reported once", () => {
  const { poll, receive } = makeSenders();
  poll({ 7: 0 });
  expect(poll({ 7: 1 })).toBe("nothing");
  receive(7, 1);
  expect([poll({ 7: 1 }), poll({ 7: 2 })]).toEqual(["nothing", "nothing"]);
  expect([poll({ 7: 2 }), poll({ 7: 2 })]).toEqual(["missed", "nothing"]);
  expect([poll({ 7: 3 }), poll({ 7: 4 }), poll({ 7: 4 }), poll({ 7: 4 })]).toEqual([
    "nothing",
    "missed",
    "missed",
    "nothing",
  ]);
});

test("[CL-51] a new listener has missed none of the notices that were counted before", () => {
  const { senders, poll } = makeSenders();
  poll({ 7: 0 });
  poll({ 7: 5 });
  senders.catchUp();
  expect([poll({ 7: 5 }), poll({ 7: 6 }), poll({ 7: 6 })]).toEqual(["nothing", "nothing", "missed"]);
});

test("[CP-52] reports once that a node that has left, or is silent for three seconds, may have unsent notices", () => {
  const { poll } = makeSenders();
  const findSilent = () => poll({ 7: 0 }, "the same");
  const checks = Array.from({ length: 9 }, findSilent);
  expect(checks.filter((check) => check === "gone")).toEqual(["gone"]);
  expect(checks.indexOf("gone")).toBe(6);
  expect([poll({}), poll({})]).toEqual(["nothing", "nothing"]);
  expect([poll({ 8: 0 }), poll({ 8: 0, 9: 0 }), poll({ 9: 0 }), poll({ 9: 0 })]).toEqual([
    "nothing",
    "nothing",
    "gone",
    "nothing",
  ]);
});
