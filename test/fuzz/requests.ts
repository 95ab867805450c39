// Random requests for an operation: valid, nearly valid, and malicious values, at any depth of a body.
import fc from "fast-check";
import type { SentRequest } from "./answers.ts";
import type { Operation } from "./operations.ts";
import { hostileValues, validValues } from "./values.ts";

/** IDs of existing objects for path parameters, without the fuzzer's own account. */
export type KnownIds = Record<string, string[]>;

const toText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** Removes what would change the path when used in a path segment. */
const segment = (text: string): string => {
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
    const there = known[parameter.name];
    const name = there ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...there) }, good, bad) : fc.oneof(good, bad);
    paths.push([parameter.name, name.map(segment)]);
  }
  return fc.record({
    path: fc.record(Object.fromEntries(paths)),
    query: fc.record(Object.fromEntries(queries), { requiredKeys: [] }),
    body: operation.body ? bodies(operation, known) : fc.constant(undefined),
  });
};

/** Body members that reference an existing object, by name. */
const NAMED: Readonly<Record<string, string>> = {
  organization_id: "organization",
  workspace_id: "workspace",
  template_id: "template",
  template_version_id: "templateversion",
  agent_id: "workspaceagent",
};

const bodies = ({ body = {} }: Operation, known: KnownIds): fc.Arbitrary<SentRequest["body"]> => {
  const values = validValues(body) as fc.Arbitrary<Record<string, unknown>>;
  const good = fc.tuple(values, fc.nat()).map(([value, pick]) => {
    const named = Object.entries(NAMED).flatMap(([member, noun]) => {
      const ids = known[noun]?.filter((id) => id.length === 36) ?? [];
      return typeof value[member] === "string" && ids.length > 0 && pick % 4 > 0
        ? [[member, ids[pick % ids.length]]]
        : [];
    });
    return { ...value, ...Object.fromEntries(named) };
  });
  const names = Object.keys(body.properties ?? { any: {} });
  const spoilt = fc
    .tuple(good, fc.constantFrom(...names), hostileValues)
    .map(([value, name, bad]) => ({ json: { ...value, [name]: bad } }));
  const cut = fc
    .tuple(good, fc.constantFrom(...names))
    .map(([value, name]) => ({ json: { ...value, [name]: undefined } }));
  const odd = fc
    .tuple(good, fc.string(), hostileValues)
    .map(([value, name, bad]) => ({ json: { ...value, [name]: bad } }));
  const deep = fc
    .tuple(good, fc.nat(), fc.option(fc.string({ minLength: 1 })), hostileValues)
    .map(([value, at, name, bad]) => ({
      json: spoiltInside(value, at, name, bad),
    }));
  const raw = fc.oneof(hostileValues.map(toText), fc.string({ unit: "binary" })).map((text) => ({
    raw: text.toWellFormed(),
    type: "application/json",
  }));
  return fc.oneof(
    { weight: 4, arbitrary: good.map((json) => ({ json })) },
    { weight: 3, arbitrary: spoilt },
    { weight: 3, arbitrary: deep },
    { weight: 1, arbitrary: cut },
    { weight: 1, arbitrary: odd },
    { weight: 1, arbitrary: raw },
  );
};

/** Returns a copy in which one nested object or list has a hostile member: a new one of this name, or in place of an existing one. */
const spoiltInside = (value: object, at: number, name: string | null, bad: unknown): unknown => {
  const copy = structuredClone(value);
  const objects: object[] = [];
  const walk = (one: unknown): void => {
    if (typeof one !== "object" || one === null) return;
    objects.push(one);
    Object.values(one).forEach(walk);
  };
  walk(copy);
  const object = objects[at % objects.length] as Record<string, unknown>;
  const there = Object.keys(object);
  const member = name ?? there[at % Math.max(1, there.length)] ?? "none";
  if (Array.isArray(object)) object.push(bad);
  else Object.defineProperty(object, member, { value: bad, enumerable: true, configurable: true, writable: true });
  return copy;
};
