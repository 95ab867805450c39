// Every operation of the OpenAPI document that changes something leaves its entry in the audit log, when it is done and when it is
// refused, or is listed with a reason. Made of the authorization matrix's calls, so that a new operation is asked about as soon as it is
// described.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { createApp } from "#src/api/app.ts";
import { declaredBy } from "#src/api/http/operation.ts";
import { Client } from "#src/client.ts";
import { describeInside } from "#test/support/inside.ts";
import { contextOf } from "#test/support/seed.ts";
import { callAs, rowOf } from "../edge/matrix-call.ts";
import { CALLERS, type CallerName, openTown, type Things, type Town } from "../edge/matrix-world.ts";
import { PREPARATIONS } from "./preparations.ts";
import { ABSENT, KNOWN, REFUSED_PORT, refusedAs, refusedRow, UNTOLD_REFUSALS } from "./refused-table.ts";
import { AUDITED, toldOf, UNTOLD } from "./table.ts";

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

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** The operations whose refusal leaves an entry. */
const REFUSABLE = KNOWN.filter((name) => !(name in UNTOLD_REFUSALS));

/** Those that declare what they change, named as the OpenAPI document does. */
const declaredOf = (app: ReturnType<typeof createApp>): string[] =>
  app.routes
    .filter(({ path, hooks }) => !path.startsWith("/api/experimental/") && declaredBy(hooks).audit)
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);

describeInside("everything that changes something", () => {
  let town: Town;
  beforeAll(async () => {
    town = await openTown();
    // Things that only a call makes, for those who are refused.
    await new Client(town.server.url, town.tokens.colleague).get("/api/v2/users/me/gitsshkey");
    const ports = `/api/v2/workspaces/${town.things.workspace}/port-share`;
    await new Client(town.server.url, town.tokens.ada).post(ports, REFUSED_PORT);
  }, 60_000);
  afterAll(async () => {
    await town[Symbol.asyncDispose]();
  });

  const COLUMNS = [
    ...["action", "resource_type", "status_code", "user_id", "ip", "user_agent", "diff", "resource_target"],
  ];
  const entriesOf = (request_id: string): Promise<Entry[]> =>
    contextOf(town.server).store.all({
      sql: `select ${COLUMNS.join(", ")} from audit_logs where request_id = ? order by key`,
      params: [request_id],
      map: (row) => Object.fromEntries(COLUMNS.map((name, i) => [name, row[i]])) as Entry,
    });

  /** The refusal of an operation for a caller, and what is notified of it. */
  const refusedFor = async (name: string, caller: CallerName): Promise<[number, Entry[]]> => {
    const operation = town.operations.find((one) => one.name === name);
    if (!operation) throw new Error("there is no such operation any more");
    const request_id = uuid();
    const headers = { "x-request-id": request_id, "user-agent": "refused/1.0" };
    const response = await callAs(town, operation, refusedRow(name), town.tokens[caller], town.things, {}, headers);
    await response.body?.cancel();
    await contextOf(town.server).refused.settled();
    return [response.status, await entriesOf(request_id)];
  };

  // First, while everything is still there.
  test.each(REFUSABLE)("[AU-16] %s: refused, it leaves one entry with what was tried", async (name) => {
    const statuses = rowOf(name).is.split(" ").map(Number);
    for (const expected of [403, 404]) {
      const caller = CALLERS[statuses.indexOf(expected)];
      if (!caller) continue;
      // No more than sixty a minute of each caller are notified of.
      town.clock.advance(2_000);
      const [status, entries] = await refusedFor(name, caller);
      expect(status).toBe(expected);
      if (ABSENT.has(name)) expect(entries).toEqual([]);
      else {
        const told = { status_code: status, ip: "127.0.0.1", user_agent: "refused/1.0", diff: "{}" };
        expect(entries).toMatchObject([told]);
        expect(refusedAs(name)).toContain(entries.map((one) => `${one.action} ${one.resource_type}`)[0] as string);
        expect([entries[0]?.user_id === null, entries[0]?.resource_target === ""]).toEqual([false, false]);
      }
    }
  });

  test("[AU-17] whatever is not told of when it is refused is listed with its reason", () => {
    const declared = declaredOf(createApp(contextOf(town.server) as never));
    const known = [...declared, ...Object.keys(UNTOLD_REFUSALS)];
    const writing = town.operations.filter(({ method }) => !READS.has(method)).map(({ name }) => name);
    const advice =
      "declare its `audit` in the `operation` of its route or list it, with the reason, in UNTOLD_REFUSALS of ./refused-table.ts";
    expect([advice, ...writing.filter((name) => !known.includes(name))]).toEqual([advice]);
    expect(known.filter((name) => !KNOWN.includes(name))).toEqual([]);
    expect(declared.filter((name) => name in UNTOLD_REFUSALS)).toEqual([]);
  });

  test.each(Object.keys(AUDITED))(
    "[AU-2] %s leaves its entry, with who and where from",
    async (name) => {
      const operation = town.operations.find((one) => one.name === name);
      if (!operation) throw new Error("there is no such operation any more");
      const { is, row: changes = {}, who, needs, fresh } = toldOf(name);
      const row = { ...rowOf(name), ...changes };
      const caller = who ?? succeeding(row.is);
      const maker = fresh ?? row.fresh;
      const things: Things = {
        ...town.things,
        ...(maker ? await town.makers[maker](caller) : {}),
        ...(needs ? await PREPARATIONS[needs](town) : {}),
      };
      const request_id = uuid();
      const headers = { "x-request-id": request_id, "user-agent": "everything/1.0" };
      const token = things.caller ?? town.tokens[caller];
      const response = await callAs(town, operation, row, token, things, {}, headers);
      const said = await response.text();
      if (!response.ok) throw new Error(`${response.status} ${said}`);
      const entries = await entriesOf(request_id);
      expect(entries.map(({ action, resource_type }) => `${action} ${resource_type}`).sort()).toEqual(
        is.split(", ").sort(),
      );
      for (const entry of entries) {
        expect(entry).toMatchObject({ status_code: response.status, ip: "127.0.0.1", user_agent: "everything/1.0" });
        expect(entry.user_id).not.toBeNull();
      }
    },
    30_000,
  );

  test("[AU-2] whatever is not told of is listed with its reason", () => {
    const writing = town.operations.filter(({ method }) => !READS.has(method)).map(({ name }) => name);
    const known = [...Object.keys(AUDITED), ...Object.keys(UNTOLD)];
    const advice = "add it to AUDITED or, with the reason, to UNTOLD in test/api/audit/table.ts";
    expect([advice, ...writing.filter((name) => !known.includes(name))]).toEqual([advice]);
    expect(known.filter((name) => !writing.includes(name))).toEqual([]);
    expect(Object.keys(AUDITED).filter((name) => name in UNTOLD)).toEqual([]);
  });
});

/** The site's owner when the matrix lets them, else whose thing it is. */
const succeeding = (is: string): CallerName => {
  const statuses = is.split(" ").map(Number);
  const may = (who: CallerName): boolean => (statuses[CALLERS.indexOf(who)] ?? 0) < 300;
  return may("admin") ? "admin" : "ada";
};
