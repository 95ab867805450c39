// Who may do what, everywhere: every operation of the OpenAPI document as every kind of caller, against the reviewed table of
// matrix-call.ts. First everything that must be rejected, with the database compared before and after; then everything that must succeed.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Operation } from "#test/fuzz/operations.ts";
import { describeInside } from "#test/support/inside.ts";
import { isWrittenByRequests, openStoredData, type StoredData } from "#test/support/stored.ts";
import { callAs, chooseTest, getRow, NAMES } from "./matrix-call.ts";
import type { Row } from "./matrix-table.ts";
import {
  CALLERS,
  type CallerName,
  type MatrixWorld,
  openMatrixWorld,
  STRANGERS,
  type TestObjects,
} from "./matrix-world.ts";

const listStatuses = (name: string): number[] => getRow(name).is.split(" ").map(Number);
const isRefusal = (status: number): boolean => status === 401 || status === 403 || status === 404;

describeInside("the authorization matrix", () => {
  let world: MatrixWorld;
  let stored: StoredData;
  beforeAll(async () => {
    world = await openMatrixWorld();
    stored = await openStoredData(world.server.directory);
  });
  afterAll(async () => {
    await stored[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const findOperation = (name: string): Operation | undefined => world.operations.find((one) => one.name === name);

  const fetchStatus = async (operation: Operation, row: Row, token: string | undefined, things: TestObjects) => {
    const response = await callAs(world, operation, row, token, things);
    await response.body?.cancel();
    return response.status;
  };

  /** Returns this caller's status; all strangers must get the same. */
  const getCallerStatus = async (
    operation: Operation,
    row: Row,
    who: CallerName,
    things: TestObjects,
  ): Promise<number | string> => {
    if (who !== "stranger") return fetchStatus(operation, row, things.caller ?? world.tokens[who], things);
    const seen: number[] = [];
    for (const kind of STRANGERS) seen.push(await fetchStatus(operation, row, world.strangers[kind], things));
    return new Set(seen).size === 1 ? (seen[0] as number) : seen.join("/");
  };

  const createThings = async ({ fresh: maker }: Row, who: CallerName): Promise<TestObjects> =>
    maker ? { ...world.things, ...(await world.makers[maker](who)) } : world.things;

  /** Restricts what is compared of a table: audit log entries of rejections do not count as changes (rule AU-16). */
  const toTableFilter = (name: string): string => (name === "audit_logs" ? " where status_code < 400" : "");

  /** Returns the whole content of the database. */
  const content = async (): Promise<string> => {
    const hash = new Bun.CryptoHasher("sha256");
    for (const name of (await stored.tables()).filter(isWrittenByRequests)) {
      hash.update(JSON.stringify([name, await stored.rows(`select * from "${name}"${toTableFilter(name)}`)]));
    }
    return hash.digest("hex");
  };

  let lastState = { version: "", content: "" };
  /** Returns true if the database differs from the last time; unchanged tables are not read again. */
  const hasChanged = async (): Promise<boolean> => {
    const version = await stored.version();
    if (version === lastState.version) return false;
    const before = lastState;
    lastState = { version, content: await content() };
    return lastState.content !== before.content;
  };

  test.each(NAMES)("[SC-2] %s: users without access are refused, and nothing has changed", async (name) => {
    const [operation, row, statuses] = [findOperation(name), getRow(name), listStatuses(name)];
    if (!operation) return;
    const seen: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [i, who] of CALLERS.entries()) {
      if (!isRefusal(statuses[i] as number)) continue;
      await hasChanged();
      seen[who] = await getCallerStatus(operation, row, who, world.things);
      expected[who] = statuses[i];
      if (await hasChanged()) seen[who] = `${seen[who]}, but it changed something`;
    }
    expect(seen).toEqual(expected);
  });

  const checkStatuses = async (name: string): Promise<void> => {
    const [operation, row, statuses] = [findOperation(name), getRow(name), listStatuses(name)];
    if (!operation) return;
    const seen: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [i, who] of CALLERS.entries()) {
      if (isRefusal(statuses[i] as number)) continue;
      seen[who] = await getCallerStatus(operation, row, who, await createThings(row, who));
      expected[who] = statuses[i];
    }
    expect(seen).toEqual(expected);
  };
  for (const name of NAMES)
    chooseTest(name)(`[SC-3] ${name}: users with access get a response`, () => checkStatuses(name));

  // Runs last, because calling an operation without a row performs it.
  test("[SC-1] every operation has its row, and every row its operation", async () => {
    const names = world.operations.map(({ name }) => name);
    const lines: string[] = [];
    for (const operation of world.operations.filter(({ name }) => !NAMES.includes(name))) {
      const seen: (number | string)[] = [];
      for (const who of CALLERS) seen.push(await getCallerStatus(operation, {}, who, world.things));
      lines.push(`  ${operation.name}: ${seen.join(" ")}`);
    }
    const advice =
      "no `access` in its operation({...}) and no row in test/api/edge/matrix-table.ts. Seen now (review each status against the specification, do not just copy):";
    if (lines.length > 0) throw new Error(`${advice}\n// ${CALLERS.join(", ")}\n${lines.join("\n")}`);
    expect(NAMES.filter((name) => !names.includes(name))).toEqual([]);
    expect(NAMES.filter((name) => listStatuses(name).length !== CALLERS.length)).toEqual([]);
  });
});
