// Arguments of tool calls that break off are never taken for whole ones.
import { expect, test } from "bun:test";
import { argumentsOf } from "#src/llm/arguments.ts";

test("[TO-7] arguments are what a model has written; those that break off, wherever that is, stay as they are", () => {
  const whole = { command: 'echo "}" \\ [{', more: { deep: [1, { a: [] }], yes: true } };
  const text = JSON.stringify(whole);
  expect(argumentsOf(text)).toEqual(whole);
  expect(argumentsOf(` ${text} \n`)).toEqual(whole);
  expect(argumentsOf(JSON.stringify(text))).toEqual(whole);
  expect([argumentsOf(""), argumentsOf(" \n")]).toEqual([{}, {}]);
  for (let end = 1; end < text.length; end += 1) {
    const cut = text.slice(0, end);
    expect(argumentsOf(cut)).toEqual({ input: cut });
  }
  for (const wrong of ["{", "no", '{"a":1', "[1", "}{", '{"a":1}}', "{a:1"]) {
    expect(argumentsOf(wrong)).toEqual({ input: wrong });
  }
});
