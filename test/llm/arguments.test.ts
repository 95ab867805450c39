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
    const cut = text.slice(0, end);
    expect(parseArguments(cut)).toEqual({ input: cut });
  }
  for (const wrong of ["{", "no", '{"a":1', "[1", "}{", '{"a":1}}', "{a:1"]) {
    expect(parseArguments(wrong)).toEqual({ input: wrong });
  }
});
