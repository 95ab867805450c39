// What the form of a new workspace says when a preset replaces what a person has given.
import { expect, test } from "bun:test";
import { replacedBy, replacedInWords } from "#src/web/app/pages/create/preset-values.ts";

const PRESET = {
  parameters: [
    { name: "size", value: "s" },
    { name: "region", value: "eu" },
  ],
};

test("[WB-93] names the given values that a preset replaces, and no others", () => {
  expect(replacedBy(PRESET, { size: "l", region: "eu", color: "red" })).toEqual({ size: "l" });
  expect(replacedBy(PRESET, {})).toEqual({});
  expect(replacedInWords("small-eu", replacedBy(PRESET, { size: "l", region: "us" }))).toBe(
    'The preset "small-eu" replaced size (was "l"), region (was "us"). Choose "Custom" to restore.',
  );
  expect(replacedInWords("small-eu", {})).toBe("");
});
