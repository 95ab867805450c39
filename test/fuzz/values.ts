// Valid and malicious values for a schema of the OpenAPI document.
import fc from "fast-check";
import type { Schema } from "./operations.ts";

/** Values that match the schema, with optional members present or absent. */
export const validValues = (schema: Schema): fc.Arbitrary<unknown> => {
  const value = arbitraryOfType(schema);
  return schema.nullable ? fc.oneof({ weight: 5, arbitrary: value }, fc.constant(null)) : value;
};

const arbitraryOfType = (schema: Schema): fc.Arbitrary<unknown> => {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(validValues));
  switch (schema.type) {
    case "string":
      return arbitraryText(schema);
    case "integer":
      return fc.integer(toBounds(schema));
    case "number":
      return fc.double({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9, noNaN: true });
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(validValues(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 4, Math.max(4, schema.minItems ?? 0)),
      });
    case "object":
      return arbitraryObject(schema);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
};

const toBounds = ({ minimum = -(2 ** 31), maximum = 2 ** 31 - 1 }: Schema) => ({
  min: Math.ceil(minimum),
  max: Math.floor(Math.max(minimum, maximum)),
});

const arbitraryText = (schema: Schema): fc.Arbitrary<string> => {
  if (schema.format === "uuid") return fc.uuid({ version: 4 });
  if (schema.format === "date-time") {
    return fc
      .date({ min: new Date(0), max: new Date("2099-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  const { minLength = 0, maxLength = Math.max(64, minLength) } = schema;
  const hasValidLength = ({ length }: string): boolean => length >= minLength && length <= maxLength;
  if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern), { maxLength }).filter(hasValidLength);
  const usualMaxLength = Math.max(minLength, Math.min(maxLength, 200));
  return fc.oneof(
    fc.string({ minLength, maxLength: usualMaxLength }),
    fc.string({ unit: "grapheme", minLength, maxLength: usualMaxLength }).filter(hasValidLength),
  );
};

const arbitraryObject = (schema: Schema): fc.Arbitrary<unknown> => {
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, memberSchema]) => [name, validValues(memberSchema)] as const,
  );
  const record = fc.record(Object.fromEntries(members), {
    requiredKeys: (schema.required ?? []).filter((name) => name in (schema.properties ?? {})),
    noNullPrototype: true,
  });
  if (typeof schema.additionalProperties !== "object") return record;
  const additionalMembers = fc.dictionary(
    fc.string({ minLength: 1, maxLength: 12 }),
    validValues(schema.additionalProperties),
    {
      maxKeys: 4,
    },
  );
  return fc.tuple(record, additionalMembers).map(([fixed, additional]) => ({ ...additional, ...fixed }));
};

/** Returns one valid value, always the same. */
export const createExampleValue = (schema: Schema): unknown =>
  fc.sample(validValues(schema), { numRuns: 1, seed: 42 })[0];

/** Values that attackers and broken programs send. */
export const hostileValues: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    -0,
    1e308,
    2 ** 53 + 2,
    "",
    " ",
    "\u0000",
    "\ud800",
    "\u202e\u0007\u001b[31m",
    "../../../etc/passwd",
    "%2e%2e%2f",
    "' OR 1=1 --",
    '" NEAR(x) *',
    "#{7*7}{{7*7}}",
    "<script>alert(1)</script>",
    "__proto__",
    "constructor",
    "toString",
    "9".repeat(400),
    "x".repeat(100_000),
    "\u{1f600}".repeat(5_000),
    "2030-13-45T99:99:99Z",
    "+275760-09-13T00:00:00.001Z",
    "00000000-0000-0000-0000-000000000000",
    [],
    [[[[[]]]]],
    [null],
    {},
    { constructor: { prototype: { polluted: 1 } } },
    JSON.parse('{"__proto__":{"polluted":1}}'),
  ),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Returns a value of a type that the schema does not allow; undefined if it allows every type. */
export const makeWrongType = (schema: Schema): unknown => {
  const allowedTypes = new Set(listTypes(schema));
  if (allowedTypes.size === 0) return undefined;
  const candidates: [string, unknown][] = [
    ["object", { wrong: true }],
    ["number", 12.5],
    ["string", "\u0000 no such word"],
    ["boolean", true],
  ];
  return candidates.find(
    ([type]) => !allowedTypes.has(type) && !(type === "number" && allowedTypes.has("integer")),
  )?.[1];
};

const listTypes = (schema: Schema): string[] => {
  if (schema.anyOf) return schema.anyOf.flatMap(listTypes);
  if (schema.enum) return [...new Set(schema.enum.map((value) => typeof value))];
  return schema.type ? [schema.type] : [];
};

/** Returns an invalid text for this query or path parameter; undefined if any text is valid. */
export const makeInvalidText = (schema: Schema): string | undefined => {
  if (schema.anyOf)
    return schema.anyOf.every((alternative) => makeInvalidText(alternative) !== undefined)
      ? "\u0001nonsense"
      : undefined;
  if (schema.enum || schema.format === "uuid" || schema.format === "date-time") return "nonsense-1";
  if (schema.type === "integer" || schema.type === "number" || schema.type === "boolean") return "nonsense";
  if (schema.pattern && !new RegExp(schema.pattern).test("\u0001 nonsense")) return "\u0001 nonsense";
  if (schema.maxLength !== undefined) return "x".repeat(schema.maxLength + 1);
  return undefined;
};
