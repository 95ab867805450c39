// The message in the form for a new workspace when a preset replaces the user's input.
import { expect, test } from "bun:test";
import { describeReplaced, findReplaced } from "#src/web/app/pages/create/preset-values.ts";

const PRESET = {
  parameters: [
    { name: "size", value: "s" },
    { name: "region", value: "eu" },
  ],
};

test("[WB-93] names only the entered values that a preset replaces", () => {
  expect(findReplaced(PRESET, { size: "l", region: "eu", color: "red" })).toEqual({ size: "l" });
  expect(findReplaced(PRESET, {})).toEqual({});
  expect(describeReplaced("small-eu", findReplaced(PRESET, { size: "l", region: "us" }))).toBe(
    'The preset "small-eu" replaced size (was "l"), region (was "us"). Choose "Custom" to restore.',
  );
  expect(describeReplaced("small-eu", {})).toBe("");
});
