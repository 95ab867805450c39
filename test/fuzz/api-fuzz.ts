// Fuzzes every operation of the OpenAPI document as the owner of the site (and agents' routes as an agent): values that fit, almost
// fit, and mean harm. Nothing may end in a 5xx, in an undocumented status, in an error of another shape, or late (rules FZ-1, FZ-2).
// A few rounds run in CI (api-fuzz.test.ts), many in `bun run torture`.
import fc from "fast-check";
import { systemClock } from "#base/clock.ts";
import { Client } from "#src/client.ts";
import { seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { fetchDocument, type Operation, operationsOf, pathWith } from "./operations.ts";
import { fitting, hostile } from "./values.ts";

type Check = { name: string; run(options: CheckOptions): Promise<string> };
type CheckOptions = { rounds: number; seed: number; log(line: string): void };

const LATE_MS = 5_000;

/** Would end the fuzzer's own session. */
const SKIPPED = new Set(["POST /api/v2/users/logout"]);

/** Statuses that any request may get from the edge. */
const FROM_THE_EDGE = new Set([429]);

type Sent = {
  path: Record<string, string>;
  query: Record<string, string | undefined>;
  body: { json: unknown } | { raw: string; type: string } | undefined;
};

/** Names of things that are there, for path parameters. The fuzzer's own account is not among them. */
type Known = Record<string, string[]>;

const seedKnown = async (server: TestServer): Promise<{ known: Known; agentToken: string }> => {
  const seeded = await seedAgent(server);
  const user = await seedUser(server);
  const known = {
    user: [user.user_id, seeded.owner_id],
    organization: ["default", seeded.organization_id],
    workspace: [seeded.workspace_id],
    workspacebuild: [seeded.build_id],
    workspaceagent: [seeded.agent_id],
    workspacename: ["dev"],
  };
  return { known, agentToken: seeded.agent_token };
};

const asText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** What cannot stand in a path segment without becoming another path. */
const segment = (text: string): string => {
  const short = text.toWellFormed().slice(0, 2_000);
  return short === "" || short === "." || short === ".." ? "none" : short;
};

const requestsFor = (operation: Operation, known: Known): fc.Arbitrary<Sent> => {
  const paths: [string, fc.Arbitrary<string>][] = [];
  const queries: [string, fc.Arbitrary<string>][] = [];
  for (const parameter of operation.parameters) {
    const good = fitting(parameter.schema).map(asText);
    const bad = hostile.map(asText).map((text) => text.toWellFormed().slice(0, 2_000));
    if (parameter.in === "query") queries.push([parameter.name, fc.oneof({ weight: 3, arbitrary: good }, bad)]);
    if (parameter.in !== "path") continue;
    const there = known[parameter.name];
    const name = there ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...there) }, good, bad) : fc.oneof(good, bad);
    paths.push([parameter.name, name.map(segment)]);
  }
  return fc.record({
    path: fc.record(Object.fromEntries(paths)),
    query: fc.record(Object.fromEntries(queries), { requiredKeys: [] }),
    body: operation.body ? bodies(operation) : fc.constant(undefined),
  });
};

const bodies = ({ body = {} }: Operation): fc.Arbitrary<Sent["body"]> => {
  const good = fitting(body) as fc.Arbitrary<Record<string, unknown>>;
  const names = Object.keys(body.properties ?? { any: {} });
  const spoilt = fc
    .tuple(good, fc.constantFrom(...names), hostile)
    .map(([value, name, bad]) => ({ json: { ...value, [name]: bad } }));
  const cut = fc
    .tuple(good, fc.constantFrom(...names))
    .map(([value, name]) => ({ json: { ...value, [name]: undefined } }));
  const odd = fc.tuple(good, fc.string(), hostile).map(([value, name, bad]) => ({ json: { ...value, [name]: bad } }));
  const raw = fc.oneof(hostile.map(asText), fc.string({ unit: "binary" })).map((text) => ({
    raw: text.toWellFormed(),
    type: "application/json",
  }));
  return fc.oneof(
    { weight: 3, arbitrary: good.map((json) => ({ json })) },
    { weight: 4, arbitrary: spoilt },
    { weight: 1, arbitrary: cut },
    { weight: 1, arbitrary: odd },
    { weight: 1, arbitrary: raw },
  );
};

/** Sends it and says what is wrong with the answer; undefined when nothing is. */
const fault = async (
  client: Client,
  operation: Operation,
  sent: Sent,
  reached: Set<string>,
): Promise<string | undefined> => {
  const began = performance.now();
  const body = sent.body === undefined ? undefined : "raw" in sent.body ? sent.body.raw : sent.body.json;
  const headers: Record<string, string> = sent.body && "raw" in sent.body ? { "content-type": sent.body.type } : {};
  const response = await client.fetch(operation.method, pathWith(operation, sent.path, sent.query), body, { headers });
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) {
    await response.body?.cancel();
    return undefined;
  }
  const text = await response.text();
  const ms = performance.now() - began;
  const { status } = response;
  if (status < 300) reached.add(operation.name);
  if (status >= 500) return `answered ${status} ${text}`;
  if (ms > LATE_MS) return `took ${Math.round(ms)} ms`;
  if (!(status in operation.described.responses) && !FROM_THE_EDGE.has(status))
    return `answered ${status}, which is not documented: ${text}`;
  return status >= 400 ? faultOfError(type, text) : undefined;
};

const faultOfError = (type: string, text: string): string | undefined => {
  if (type !== "application/json; charset=utf-8") return `an error of type ${type}`;
  const { message, detail, validations, ...rest } = JSON.parse(text) as Record<string, unknown>;
  const isGeneric =
    typeof message === "string" &&
    Object.keys(rest).length === 0 &&
    (detail === undefined || typeof detail === "string") &&
    (validations === undefined || Array.isArray(validations));
  return isGeneric ? undefined : `an error of another shape: ${text}`;
};

/** `rounds` requests for each operation. Returns what was seen, in one line; throws with every operation that failed. */
const fuzzOperations = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  // In this process, also when the binary is under test: workspaces and agents are put into the store directly.
  await using server = await startTestServer({ clock: systemClock });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const faults: string[] = [];
  let tried = 0;
  const reached = new Set<string>();
  for (const operation of operationsOf(await fetchDocument(server.url))) {
    if (SKIPPED.has(operation.name)) continue;
    // Fresh for each operation, for the one before may have deleted them.
    const { known, agentToken } = await seedKnown(server);
    const token =
      operation.callers.length === 0 ? undefined : operation.callers[0] === "agent" ? agentToken : admin.token;
    const client = admin.as(token);
    let why: string | undefined;
    const property = fc.asyncProperty(requestsFor(operation, known), async (sent) => {
      tried++;
      const found = await fault(client, operation, sent, reached);
      if (found !== undefined) why = found;
      return found === undefined;
    });
    const outcome = await fc.check(property, { seed, numRuns: rounds });
    if (!outcome.failed) continue;
    const example = JSON.stringify(outcome.counterexample)?.slice(0, 600);
    faults.push(`${operation.name} ${why ?? String(outcome.errorInstance)}\n  with ${example}`);
    log(faults.at(-1) as string);
  }
  if ((await admin.fetch("GET", "/api/v2/users/me")).status !== 200) faults.push("the fuzzer's own session is gone");
  if (faults.length > 0) throw new Error(`seed ${seed}: ${faults.length} operations fail:\n${faults.join("\n")}`);
  return `${tried} requests, seed ${seed}, ${reached.size} operations did their work: no 5xx, no undocumented status, no other shape of error`;
};

export const checks: readonly Check[] = [{ name: "API fuzz: values for every operation", run: fuzzOperations }];
