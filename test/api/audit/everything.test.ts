// Every changing operation of the OpenAPI document leaves an audit log entry when it succeeds and when it is rejected, or is listed with a
// reason. Uses the authorization matrix's calls, so that every new operation in the document is checked.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { Client } from "#src/client.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { callAs, DECLARED_AUDITS, getRow } from "../edge/matrix-call.ts";
import { CALLERS, type CallerName, type MatrixWorld, openMatrixWorld, type TestObjects } from "../edge/matrix-world.ts";
import { PREPARATIONS } from "./preparations.ts";
import { AUDITED, REFUSED_PORT, toExpectedAudit, UNAUDITED, WITHOUT_TARGET } from "./table.ts";

type Entry = {
  action: string;
  resource_type: string;
  status_code: number;
  user_id: string | null;
  ip: string | null;
  user_agent: string;
  diff: string;
  resource_target: string;
};

const READ_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** The operations whose success leaves an entry: first the table's, in its order, then the declared ones. */
const AUDITED_OPERATIONS = [
  ...new Set([...Object.keys(AUDITED), ...DECLARED_AUDITS.filter((name) => !(name in UNAUDITED))]),
];

/** Actions that leave an entry only on success: they create something, or rule AU-6 covers their failures. */
const RECORDED_ONLY_ON_SUCCESS = /^(create|login|logout) /;

describeInProcess("operations that change something", () => {
  let world: MatrixWorld;
  beforeAll(async () => {
    world = await openMatrixWorld();
    // Creates the objects that rejected calls need.
    await new Client(world.server.url, world.tokens.colleague).get("/api/v2/users/me/gitsshkey");
    const ports = `/api/v2/workspaces/${world.things.workspace}/port-share`;
    await new Client(world.server.url, world.tokens.ada).post(ports, REFUSED_PORT);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  /** The action and resource type that each rejected operation has recorded. */
  const refusals = new Map<string, string>();

  const COLUMNS = [
    ...["action", "resource_type", "status_code", "user_id", "ip", "user_agent", "diff", "resource_target"],
  ];
  const listEntries = (request_id: string): Promise<Entry[]> =>
    getContext(world.server).store.all({
      sql: `select ${COLUMNS.join(", ")} from audit_logs where request_id = ? order by key`,
      params: [request_id],
      map: (row) => Object.fromEntries(COLUMNS.map((name, i) => [name, row[i]])) as Entry,
    });

  /** Rejects an operation for a caller, and returns the status and the audit entries. */
  const rejectFor = async (name: string, caller: CallerName): Promise<[number, Entry[]]> => {
    const operation = world.operations.find((operation) => operation.name === name);
    if (!operation) throw new Error(`unknown operation: ${name}`);
    const request_id = uuid();
    const headers = { "x-request-id": request_id, "user-agent": "refused/1.0" };
    const row = { ...getRow(name), ...toExpectedAudit(name).refusedRow };
    const response = await callAs(world, operation, row, world.tokens[caller], world.things, {}, headers);
    await response.body?.cancel();
    await getContext(world.server).refused.flush();
    return [response.status, await listEntries(request_id)];
  };

  // Runs first, because later tests delete objects.
  test.each(DECLARED_AUDITS)("[AU-16] a rejected %s leaves one entry with the intended action", async (name) => {
    const statuses = getRow(name).statuses.split(" ").map(Number);
    for (const expected of [403, 404]) {
      const caller = CALLERS[statuses.indexOf(expected)];
      if (!caller) continue;
      // At most sixty entries per minute and caller are written.
      world.clock.advance(2_000);
      const [status, entries] = await rejectFor(name, caller);
      expect(status).toBe(expected);
      if (WITHOUT_TARGET.has(name)) expect(entries).toEqual([]);
      else {
        const expectedEntry = { status_code: status, ip: "127.0.0.1", user_agent: "refused/1.0", diff: "{}" };
        expect(entries).toMatchObject([expectedEntry]);
        const recorded = entries.map((entry) => `${entry.action} ${entry.resource_type}`)[0] as string;
        const { entries: successEntries, refusedEntries = successEntries } = toExpectedAudit(name);
        if (refusedEntries) expect(refusedEntries.split(", ")).toContain(recorded);
        refusals.set(name, recorded);
        expect([entries[0]?.user_id === null, entries[0]?.resource_target === ""]).toEqual([false, false]);
      }
    }
  });

  test.each(AUDITED_OPERATIONS)("[AU-2] %s leaves an entry with its user, IP address and user agent", async (name) => {
    const operation = world.operations.find((operation) => operation.name === name);
    if (!operation) throw new Error(`unknown operation: ${name}`);
    const { entries: expected = refusals.get(name), row: changes = {}, who, needs, fresh } = toExpectedAudit(name);
    if (!expected)
      throw new Error(`no caller is refused: add "${name}": "write KIND" to AUDITED of test/api/audit/table.ts`);
    const row = { ...getRow(name), ...changes };
    const caller = who ?? findAllowedCaller(row.statuses);
    const makerName = fresh ?? row.fresh;
    const things: TestObjects = {
      ...world.things,
      ...(makerName ? await world.makers[makerName](caller) : {}),
      ...(needs ? await PREPARATIONS[needs](world) : {}),
    };
    const request_id = uuid();
    const headers = { "x-request-id": request_id, "user-agent": "everything/1.0" };
    const token = things.caller ?? world.tokens[caller];
    const response = await callAs(world, operation, row, token, things, {}, headers);
    const message = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${message}`);
    const entries = await listEntries(request_id);
    expect(entries.map(({ action, resource_type }) => `${action} ${resource_type}`).sort()).toEqual(
      expected.split(", ").sort(),
    );
    for (const entry of entries) {
      expect(entry).toMatchObject({ status_code: response.status, ip: "127.0.0.1", user_agent: "everything/1.0" });
      expect(entry.user_id).not.toBeNull();
    }
  });

  test("[AU-2] [AU-17] every operation that changes something declares its `audit`, or is listed with the reason", () => {
    const writing = world.operations.filter(({ method }) => !READ_METHODS.has(method));
    const missing = writing.filter(
      ({ name }) =>
        !DECLARED_AUDITS.includes(name) &&
        !(name in UNAUDITED) &&
        !RECORDED_ONLY_ON_SUCCESS.test(toExpectedAudit(name).entries ?? "no entry"),
    );
    const lines = missing.map(
      ({ name, described }) =>
        `add \`audit: target.writes(target.KIND)\` to operation({ operationId: "${described.operationId}" }); or, where it makes something, "${name}": "create KIND" to AUDITED, or the reason to UNAUDITED in test/api/audit/table.ts`,
    );
    expect(lines).toEqual([]);
    const names = writing.map(({ name }) => name);
    expect([...AUDITED_OPERATIONS, ...Object.keys(UNAUDITED)].filter((name) => !names.includes(name))).toEqual([]);
    expect(Object.keys(AUDITED).filter((name) => name in UNAUDITED)).toEqual([]);
  });
});

/** Returns the site's owner if the matrix allows it, else the owner of the object. */
const findAllowedCaller = (expectedStatuses: string): CallerName => {
  const statuses = expectedStatuses.split(" ").map(Number);
  const isAllowed = (caller: CallerName): boolean => (statuses[CALLERS.indexOf(caller)] ?? 0) < 300;
  return isAllowed("admin") ? "admin" : "ada";
};
