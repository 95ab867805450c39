// Every operation of the OpenAPI document that changes something leaves its entry in the audit log, or is listed with a reason. Made of
// the authorization matrix's calls, so that a new operation is asked about as soon as it is described.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { describeInside } from "#test/support/inside.ts";
import { callAs, rowOf } from "../edge/matrix-call.ts";
import { CALLERS, type CallerName, openTown, type Things, type Town } from "../edge/matrix-world.ts";
import { PREPARATIONS } from "./preparations.ts";
import { AUDITED, toldOf, UNTOLD } from "./table.ts";

type Entry = {
  action: string;
  resource_type: string;
  status_code: number;
  user_id: string | null;
  ip: string | null;
  user_agent: string;
};

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

describeInside("everything that changes something", () => {
  let town: Town;
  let eyes: Database;
  beforeAll(async () => {
    town = await openTown();
    eyes = new Database(join(town.server.directory, "slipway.db"), { readonly: true });
  }, 60_000);
  afterAll(async () => {
    eyes.close();
    await town[Symbol.asyncDispose]();
  });

  const entriesOf = (request_id: string): Entry[] =>
    eyes
      .query(
        "select action, resource_type, status_code, user_id, ip, user_agent from audit_logs where request_id = ? order by key",
      )
      .all(request_id) as Entry[];

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
      const entries = entriesOf(request_id);
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
