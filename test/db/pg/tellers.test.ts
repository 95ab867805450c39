// How many notices each node has told, and whether they were heard: pure.
import { expect, test } from "bun:test";
import { type Found, Tellers } from "#db/pg/told/tellers.ts";

const SILENCE_MS = 3_000;

/** Looks twice a second at nodes that say this, one look after the other. */
const looking = () => {
  const tellers = new Tellers(SILENCE_MS);
  let now = 0;
  const see = (told: Readonly<Record<number, number>>, sign = `${now}`): Found => {
    now += 500;
    const all = Object.entries(told).map(([epoch, one]) => ({ epoch: Number(epoch), told: one, sign }));
    return tellers.see(all, now);
  };
  const hear = (epoch: number, n: number): void => tellers.hear({ epoch, n, audit: true }, now);
  return { tellers, see, hear };
};

test("[CL-51] what was told and heard, and what nobody has told, is nothing to look for", () => {
  const { see, hear } = looking();
  expect([see({ 7: 0, 8: 0 }), see({ 7: 0, 8: 0 })]).toEqual(["nothing", "nothing"]);
  hear(7, 1);
  hear(7, 2);
  expect([see({ 7: 2, 8: 0 }), see({ 7: 2, 8: 0 })]).toEqual(["nothing", "nothing"]);
  // A number that was refused is left out.
  hear(7, 4);
  expect([see({ 7: 4, 8: 0 }), see({ 7: 4, 8: 0 })]).toEqual(["nothing", "nothing"]);
});

test("[CL-51] what comes a moment later than its count is not missed, what does not come is, once", () => {
  const { see, hear } = looking();
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

test("[CL-51] who begins to listen has heard what was known to be told by then", () => {
  const { tellers, see } = looking();
  see({ 7: 0 });
  see({ 7: 5 });
  tellers.catchUp();
  expect([see({ 7: 5 }), see({ 7: 6 }), see({ 7: 6 })]).toEqual(["nothing", "nothing", "missed"]);
});

test("[CP-52] a node that no longer exists, or says nothing for three seconds, may have meant to tell more: that is said once", () => {
  const { see } = looking();
  const silent = () => see({ 7: 0 }, "the same");
  const said = Array.from({ length: 9 }, silent);
  expect(said.filter((one) => one === "gone")).toEqual(["gone"]);
  expect(said.indexOf("gone")).toBe(6);
  expect([see({}), see({})]).toEqual(["nothing", "nothing"]);
  expect([see({ 8: 0 }), see({ 8: 0, 9: 0 }), see({ 9: 0 }), see({ 9: 0 })]).toEqual([
    "nothing",
    "nothing",
    "gone",
    "nothing",
  ]);
});
