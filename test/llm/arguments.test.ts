// Arguments of tool calls that break off: what is mended, and what never is.
import { expect, test } from "bun:test";
import { argumentsOf } from "#src/llm/arguments.ts";

test("[TO-7] arguments that lack nothing but their last braces are mended; whatever could be half of something is not", () => {
  const whole = { command: 'echo "}" \\ [{', more: { deep: [1, { a: [] }], yes: true } };
  const text = JSON.stringify(whole);
  expect(argumentsOf(text)).toEqual(whole);
  expect(argumentsOf(` ${text} \n`)).toEqual(whole);
  expect(argumentsOf(text.slice(0, -1))).toEqual(whole);
  expect(argumentsOf(`${text.slice(0, -2)} \n`)).toEqual(whole);
  expect([argumentsOf(""), argumentsOf(" \n")]).toEqual([{}, {}]);
  // Wherever it is cut, the outcome is a part of the whole at a whole value, or the text as it is.
  const full = '{"path":"a b","files":[{"x":1},{"x":"\\"2"}],"n":12,"on":false,"none":null}';
  const mended: unknown[] = [];
  for (let end = 1; end < full.length; end += 1) {
    const cut = full.slice(0, end);
    const made = argumentsOf(cut) as Record<string, unknown>;
    if ("input" in made) expect(made).toEqual({ input: cut });
    else mended.push(made);
  }
  const files = [{ x: 1 }, { x: '"2' }];
  expect(mended).toEqual([
    { path: "a b" },
    { path: "a b", files },
    { path: "a b", files, n: 12, on: false },
    { path: "a b", files, n: 12, on: false, none: null },
  ]);
  for (const wrong of ["{", "no", '{"a":1', '{"a":"b', '{"a":', '{"a",', "[1", "}{", '{"a":1}}', "{a:1"]) {
    expect(argumentsOf(wrong)).toEqual({ input: wrong });
  }
});
