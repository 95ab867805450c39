// Truncated arguments of tool calls are never accepted as complete.
import { expect, test } from "bun:test";
import { parseArguments } from "#src/llm/arguments.ts";

test("[TO-7] keeps arguments as the model wrote them, including truncated ones", () => {
  const complete = { command: 'echo "}" \\ [{', more: { deep: [1, { a: [] }], yes: true } };
  const text = JSON.stringify(complete);
  expect(parseArguments(text)).toEqual(complete);
  expect(parseArguments(` ${text} \n`)).toEqual(complete);
  expect(parseArguments(JSON.stringify(text))).toEqual(complete);
  expect([parseArguments(""), parseArguments(" \n")]).toEqual([{}, {}]);
  for (let end = 1; end < text.length; end += 1) {
    const truncated = text.slice(0, end);
    expect(parseArguments(truncated)).toEqual({ input: truncated });
  }
  for (const invalid of ["{", "no", '{"a":1', "[1", "}{", '{"a":1}}', "{a:1"]) {
    expect(parseArguments(invalid)).toEqual({ input: invalid });
  }
});
