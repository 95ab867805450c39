// Random requests for an operation: with valid, nearly valid and malicious values, at any depth of the body.
import fc from "fast-check";
import type { SentRequest } from "./answers.ts";
import type { Operation } from "./operations.ts";
import { hostileValues, validValues } from "./values.ts";

/** IDs of existing objects for path parameters, without the fuzzer's own account. */
export type KnownIds = Record<string, string[]>;

const toText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** Returns the text shortened, or "none" if it would change the path. */
const toPathSegment = (text: string): string => {
  const short = text.toWellFormed().slice(0, 2_000);
  return short === "" || short === "." || short === ".." ? "none" : short;
};

export const arbitraryRequests = (operation: Operation, known: KnownIds): fc.Arbitrary<SentRequest> => {
  const paths: [string, fc.Arbitrary<string>][] = [];
  const queries: [string, fc.Arbitrary<string>][] = [];
  for (const parameter of operation.parameters) {
    const good = validValues(parameter.schema).map(toText);
    const bad = hostileValues.map(toText).map((text) => text.toWellFormed().slice(0, 2_000));
    if (parameter.in === "query") queries.push([parameter.name, fc.oneof({ weight: 3, arbitrary: good }, bad)]);
    if (parameter.in !== "path") continue;
    const knownIds = known[parameter.name];
    const pathValue = knownIds
      ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...knownIds) }, good, bad)
      : fc.oneof(good, bad);
    paths.push([parameter.name, pathValue.map(toPathSegment)]);
  }
  return fc.record({
    path: fc.record(Object.fromEntries(paths)),
    query: fc.record(Object.fromEntries(queries), { requiredKeys: [] }),
    body: operation.body ? arbitraryBodies(operation, known) : fc.constant(undefined),
  });
};

/** Body members that reference an existing object, by name. */
const REFERENCES: Readonly<Record<string, string>> = {
  organization_id: "organization",
  workspace_id: "workspace",
  template_id: "template",
  template_version_id: "templateversion",
  agent_id: "workspaceagent",
};

const arbitraryBodies = ({ body = {} }: Operation, known: KnownIds): fc.Arbitrary<SentRequest["body"]> => {
  const values = validValues(body) as fc.Arbitrary<Record<string, unknown>>;
  const good = fc.tuple(values, fc.nat()).map(([value, pick]) => {
    const references = Object.entries(REFERENCES).flatMap(([member, noun]) => {
      const ids = known[noun]?.filter((id) => id.length === 36) ?? [];
      return typeof value[member] === "string" && ids.length > 0 && pick % 4 > 0
        ? [[member, ids[pick % ids.length]]]
        : [];
    });
    return { ...value, ...Object.fromEntries(references) };
  });
  const names = Object.keys(body.properties ?? { any: {} });
  const invalidMember = fc
    .tuple(good, fc.constantFrom(...names), hostileValues)
    .map(([value, name, bad]) => ({ json: { ...value, [name]: bad } }));
  const missingMember = fc
    .tuple(good, fc.constantFrom(...names))
    .map(([value, name]) => ({ json: { ...value, [name]: undefined } }));
  const unknownMember = fc
    .tuple(good, fc.string(), hostileValues)
    .map(([value, name, bad]) => ({ json: { ...value, [name]: bad } }));
  const invalidNested = fc
    .tuple(good, fc.nat(), fc.option(fc.string({ minLength: 1 })), hostileValues)
    .map(([value, index, name, bad]) => ({
      json: invalidateNested(value, index, name, bad),
    }));
  const raw = fc.oneof(hostileValues.map(toText), fc.string({ unit: "binary" })).map((text) => ({
    raw: text.toWellFormed(),
    type: "application/json",
  }));
  return fc.oneof(
    { weight: 4, arbitrary: good.map((json) => ({ json })) },
    { weight: 3, arbitrary: invalidMember },
    { weight: 3, arbitrary: invalidNested },
    { weight: 1, arbitrary: missingMember },
    { weight: 1, arbitrary: unknownMember },
    { weight: 1, arbitrary: raw },
  );
};

/** Returns a copy in which one nested object or list has a hostile member: a new one of this name, or in place of an existing one. */
const invalidateNested = (value: object, index: number, name: string | null, bad: unknown): unknown => {
  const copy = structuredClone(value);
  const objects: object[] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    objects.push(node);
    Object.values(node).forEach(walk);
  };
  walk(copy);
  const object = objects[index % objects.length] as Record<string, unknown>;
  const names = Object.keys(object);
  const member = name ?? names[index % Math.max(1, names.length)] ?? "none";
  if (Array.isArray(object)) object.push(bad);
  else Object.defineProperty(object, member, { value: bad, enumerable: true, configurable: true, writable: true });
  return copy;
};
