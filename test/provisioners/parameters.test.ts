// Parameters: which values are valid, which value applies, and that a hostile pattern has a bounded cost.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "#base/errors.ts";
import type { Manifest, ManifestParameter } from "#schema/templates/manifest.ts";
import { evaluate } from "#src/provisioners/dynamic.ts";
import { checkValue, listReusedParameters, resolveParameters, resolveVariables } from "#src/provisioners/parameters.ts";
import { compilePattern } from "#src/provisioners/pattern.ts";
import { scaleTimeout } from "#test/support/pace.ts";

const makeManifest = (...parameters: ManifestParameter[]): Manifest => ({
  provisioner: "echo",
  parameters,
  resources: [{ name: "a" }],
});

const catchValidations = (run: () => unknown): Record<string, string> => {
  try {
    run();
  } catch (error) {
    if (error instanceof AppError)
      return Object.fromEntries(error.validations.map(({ field, detail }) => [field, detail]));
    throw error;
  }
  return {};
};

describe("one value", () => {
  const MANY_OPTIONS = Array.from({ length: 500 }, (_, index) => ({ name: `V${index}`, value: `v${index}` }));
  const FIRST_TWENTY_VALUES = MANY_OPTIONS.slice(0, 20)
    .map(({ value }) => value)
    .join(", ");
  const size: ManifestParameter = {
    name: "size",
    type: "number",
    validation: { min: 1, max: 8, monotonic: "increasing" },
  };
  test.each<[ManifestParameter, string, string | undefined, string | undefined]>([
    [size, "4", undefined, undefined],
    [size, "4", "3", undefined],
    [size, "2", "3", "can only grow; it was 3"],
    [size, "0", undefined, "must be at least 1"],
    [size, "9", undefined, "must be at most 8"],
    [size, "1e9", undefined, "must be a number in digits, such as 5 or -0.5"],
    [size, "", undefined, "must be a number in digits, such as 5 or -0.5"],
    [{ ...size, validation: { max: 2, error: "{value} is over {max}" } }, "3", undefined, "3 is over 2"],
    [{ name: "b", type: "bool" }, "yes", undefined, "must be true or false"],
    [{ name: "l", type: "list(string)" }, '["a", "b"]', undefined, undefined],
    [{ name: "l", type: "list(string)" }, "[1]", undefined, "must be a JSON list of at most 256 strings"],
    [
      { name: "l", type: "list(string)", options: [{ name: "A", value: "a" }] },
      '["a", "b"]',
      undefined,
      "must be one of a",
    ],
    [{ name: "s", options: [{ name: "A", value: "a" }] }, "b", undefined, "must be one of a"],
    [{ name: "s", options: MANY_OPTIONS }, "b", undefined, `must be one of ${FIRST_TWENTY_VALUES} and 480 more`],
    [{ name: "n", type: "number" }, "1".repeat(33), undefined, "must be a number of at most 32 characters"],
    [
      { name: "s", validation: { regex: "^[a-z]+$", error: "small letters only" } },
      "A",
      undefined,
      "small letters only",
    ],
    [{ name: "s", validation: { regex: "a" } }, "x".repeat(5000), undefined, "must be at most 4096 characters long"],
    [{ name: "s" }, "a\0b", undefined, "must not contain NUL"],
  ])("[TP-24] %j with %p after %p: %p", (parameter, value, previous, reason) => {
    expect(checkValue(parameter, value, previous)).toBe(reason);
  });
});

describe("the values of a build", () => {
  const manifest = makeManifest(
    { name: "kept", default: "d" },
    { name: "moving", mutable: true, default: 1, type: "number" },
    { name: "once", mutable: true, ephemeral: true, default: "o" },
    { name: "needed" },
  );

  test("[TP-24] given values override the previous build's, which override defaults; ephemeral values are not kept", () => {
    const first = resolveParameters({
      manifest,
      given: [
        { name: "needed", value: "n" },
        { name: "once", value: "x" },
      ],
    });
    expect(first).toEqual({ kept: "d", moving: "1", once: "x", needed: "n" });
    expect(listReusedParameters(manifest, first).map(({ name }) => name)).toEqual(["kept", "moving", "needed"]);
    const next = resolveParameters({
      manifest,
      given: [{ name: "moving", value: "2" }],
      previous: { ...first, once: "x" },
    });
    expect(next).toEqual({ kept: "d", moving: "2", once: "o", needed: "n" });
  });

  test("[TP-24] one error lists every invalid parameter", () => {
    const given = [
      { name: "kept", value: "other" },
      { name: "moving", value: "fast" },
      { name: "unknown", value: "" },
      { name: "moving", value: "2" },
    ];
    expect(catchValidations(() => resolveParameters({ manifest, given, previous: { kept: "d" } }))).toEqual({
      kept: "cannot be changed after the workspace was created",
      moving: "must be a number in digits, such as 5 or -0.5",
      unknown: "the template has no parameter of this name",
      needed: "is required",
    });
  });

  test("[TP-24] a preset overrides given values, and names of Object's properties are valid parameter names", () => {
    const preset = { name: "p", parameters: { moving: 7 } };
    const given = [
      { name: "moving", value: "2" },
      { name: "needed", value: "" },
    ];
    expect(resolveParameters({ manifest, given, preset })).toMatchObject({ moving: "7", needed: "" });
    expect(
      resolveParameters({ manifest: makeManifest({ name: "constructor", default: "c" }), given: [], previous: {} }),
    ).toEqual({
      constructor: "c",
    });
  });

  test("[TP-15] template variables can be given, default, missing or invalid", () => {
    const variables = [{ name: "a" }, { name: "b", default: 3 }, { name: "c", type: "number" as const }];
    expect(resolveVariables(variables, { c: "x" })).toEqual({
      values: { b: "3" },
      missing: ["a"],
      invalid: [{ field: "c", detail: "must be a number in digits, such as 5 or -0.5" }],
    });
  });
});

describe("patterns", () => {
  const patternPart = fc.constantFrom(
    "a",
    "b",
    "[ab]",
    "[^a]",
    ".",
    "\\d",
    "\\w",
    "(?:ab|b)",
    "(a|)",
    "^",
    "$",
    "\\b",
    "a*",
    "b+?",
    "a{1,2}",
    "[a-c]{2,}",
  );
  const anyPattern = fc.array(patternPart, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));
  const anyValue = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", " ", "\n"), maxLength: 8 });

  test("[TP-12] a pattern matches what JavaScript's own engine matches", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyPattern,
          fc.tuple(anyPattern, anyPattern).map(([a, b]) => `${a}|(${b})*`),
        ),
        anyValue,
        (pattern, value) => {
          expect(compilePattern(pattern).test(value)).toBe(new RegExp(pattern).test(value));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test("[TP-12] named classes work inside a set, as in RE2", () => {
    const matchesPattern = (pattern: string, value: string): boolean | undefined => compilePattern(pattern).test(value);
    expect(["a-b", "a b", "-"].map((value) => matchesPattern("^[[:alpha:]-]+$", value))).toEqual([true, false, true]);
    expect(["07f", "0x"].map((value) => matchesPattern("^[[:xdigit:]]+$", value))).toEqual([true, false]);
    expect(["a1", "a!"].map((value) => matchesPattern("^[^[:punct:]]+$", value))).toEqual([true, false]);
    expect(() => compilePattern("[[:letters:]]")).toThrow("which is not a class");
  });

  test("[TP-12] every pattern needs a bounded number of steps for each character", () => {
    const hostilePatterns = ["^(a+)+$", "^(a|a)*$", "(.*)*(.*)*(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){50}a{50}"];
    for (const pattern of hostilePatterns)
      expect(compilePattern(pattern).test(`${"a".repeat(4096)}!`)).toBe(pattern.startsWith("(a?)"));
  });

  test("[TP-12] all patterns of a request share the time limit of one pattern", () => {
    const regex = "^(?:[ab]*a*){400}$";
    const parameters = Array.from({ length: 128 }, (_, i) => ({ name: `p${i}`, validation: { regex } }));
    const value = `${"ab".repeat(2_000)}!`;
    const given = parameters.map(({ name }) => ({ name, value }));
    const manifest = { parameters } as unknown as Manifest;
    const startedAt = performance.now();
    expect(() => resolveParameters({ manifest, given })).toThrow("Parameter values are invalid.");
    const { parameters: evaluated } = evaluate(manifest, Object.fromEntries(given.map(({ name }) => [name, value])));
    expect(evaluated[127]?.diagnostics[0]?.detail).toContain("takes too long");
    // Without the shared limit, each of the two calls takes more than half a minute.
    expect(performance.now() - startedAt).toBeLessThan(scaleTimeout(5_000));
    const cheapManifest = {
      parameters: [{ name: "a", validation: { regex: "^[a-z0-9-]{1,63}$" } }],
    } as unknown as Manifest;
    expect(resolveParameters({ manifest: cheapManifest, given: [{ name: "a", value: "x".repeat(63) }] })).toEqual({
      a: "x".repeat(63),
    });
  });

  test.each([
    "(?=a)",
    "\\1",
    "(a",
    "a)",
    "[a",
    "*",
    "a**",
    "(?<!a)b",
    "x{5000}",
    "((a{50}){50}){50}",
    "a{2,1}",
    "[b-a]",
    "\\",
  ])("[TP-12] the pattern %s is refused with a reason", (pattern) => {
    expect(() => compilePattern(pattern)).toThrow(SyntaxError);
  });
});
