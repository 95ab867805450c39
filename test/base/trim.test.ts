// Removing characters at the ends of texts that users and model servers send.
import { expect, test } from "bun:test";
import { parseLabel, parseTitle } from "#actors/chat/background/title-text.ts";
import { trimEnd, trimEnds } from "#base/text/trim.ts";
import { repairSchema } from "#src/llm/request/schema.ts";

test("[RP-52] characters are removed at the ends only", () => {
  expect(trimEnds("--a-b--", "-")).toBe("a-b");
  expect(trimEnd("/a//", "/")).toBe("/a");
  expect([trimEnd("///", "/"), trimEnds("", "-")]).toEqual(["", ""]);
});

test("[RP-52] a tool's schema with a very long name of a property is repaired without a noticeable pause", () => {
  const name = `a${"_".repeat(4_000_000)}a!`;
  const repaired = repairSchema({ type: "object", properties: { [name]: { type: "string" } } });
  expect(JSON.stringify(repaired?.schema).length).toBeLessThan(200);
});

test("[RP-52] a model's long answer for a title is read without a noticeable pause", () => {
  const blanks = " ".repeat(1_000_000);
  for (const answer of [
    `<title>${blanks}<x`,
    `x${'"'.repeat(1_000_000)}y`,
    `a${"\n".repeat(1_000_000)}`,
    `a${blanks}b`,
  ])
    expect([parseTitle(answer)?.length ?? 0, parseLabel(answer)?.length ?? 0].every((length) => length <= 80)).toBe(
      true,
    );
  expect(parseTitle(`<title>${blanks}Fix the build${blanks}</title>`)).toBe("Fix the build");
});
