// Calls every operation of the OpenAPI document as every kind of caller, and compares the statuses with the reviewed table of
// matrix-table.ts. Calls that must be rejected run first, with a comparison of the database; then calls that must succeed.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Operation } from "#test/fuzz/operations.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { isWrittenByRequests, openStoredData, type StoredData } from "#test/support/stored.ts";
import { callAs, chooseTest, getRow, OPERATION_NAMES } from "./matrix-call.ts";
import type { Row } from "./matrix-table.ts";
import {
  CALLERS,
  type CallerName,
  type MatrixWorld,
  openMatrixWorld,
  STRANGERS,
  type TestObjects,
} from "./matrix-world.ts";

const listStatuses = (name: string): number[] => getRow(name).statuses.split(" ").map(Number);
const isRejection = (status: number): boolean => status === 401 || status === 403 || status === 404;

describeInProcess("the authorization matrix", () => {
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

  const findOperation = (name: string): Operation | undefined =>
    world.operations.find((operation) => operation.name === name);

  const fetchStatus = async (operation: Operation, row: Row, token: string | undefined, things: TestObjects) => {
    const response = await callAs(world, operation, row, token, things);
    await response.body?.cancel();
    return response.status;
  };

  /** Returns this caller's status; all strangers must get the same status. */
  const getCallerStatus = async (
    operation: Operation,
    row: Row,
    caller: CallerName,
    things: TestObjects,
  ): Promise<number | string> => {
    if (caller !== "stranger") return fetchStatus(operation, row, things.caller ?? world.tokens[caller], things);
    const statuses: number[] = [];
    for (const kind of STRANGERS) statuses.push(await fetchStatus(operation, row, world.strangers[kind], things));
    return new Set(statuses).size === 1 ? (statuses[0] as number) : statuses.join("/");
  };

  const createThings = async ({ fresh: maker }: Row, caller: CallerName): Promise<TestObjects> =>
    maker ? { ...world.things, ...(await world.makers[maker](caller)) } : world.things;

  /** Returns a filter that excludes audit log entries of rejections, which do not count as changes (rule AU-16). */
  const toTableFilter = (name: string): string => (name === "audit_logs" ? " where status_code < 400" : "");

  /** Returns a hash of the database's content. */
  const hashContent = async (): Promise<string> => {
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
    lastState = { version, content: await hashContent() };
    return lastState.content !== before.content;
  };

  test.each(OPERATION_NAMES)("[SC-2] %s: rejects users without access, and changes nothing", async (name) => {
    const [operation, row, statuses] = [findOperation(name), getRow(name), listStatuses(name)];
    if (!operation) return;
    const statusByCaller: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [i, caller] of CALLERS.entries()) {
      if (!isRejection(statuses[i] as number)) continue;
      await hasChanged();
      statusByCaller[caller] = await getCallerStatus(operation, row, caller, world.things);
      expected[caller] = statuses[i];
      if (await hasChanged()) statusByCaller[caller] = `${statusByCaller[caller]}, but it changed something`;
    }
    expect(statusByCaller).toEqual(expected);
  });

  const checkStatuses = async (name: string): Promise<void> => {
    const [operation, row, statuses] = [findOperation(name), getRow(name), listStatuses(name)];
    if (!operation) return;
    const statusByCaller: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [i, caller] of CALLERS.entries()) {
      if (isRejection(statuses[i] as number)) continue;
      statusByCaller[caller] = await getCallerStatus(operation, row, caller, await createThings(row, caller));
      expected[caller] = statuses[i];
    }
    expect(statusByCaller).toEqual(expected);
  };
  for (const name of OPERATION_NAMES)
    chooseTest(name)(`[SC-3] ${name}: users with access get a response`, () => checkStatuses(name));

  // Runs last, because calling an operation without a row performs it.
  test("[SC-1] every operation has a row, and every row an operation", async () => {
    const names = world.operations.map(({ name }) => name);
    const lines: string[] = [];
    for (const operation of world.operations.filter(({ name }) => !OPERATION_NAMES.includes(name))) {
      const statuses: (number | string)[] = [];
      for (const caller of CALLERS) statuses.push(await getCallerStatus(operation, {}, caller, world.things));
      lines.push(`  ${operation.name}: ${statuses.join(" ")}`);
    }
    const advice =
      "no `access` in its operation({...}) and no row in test/api/edge/matrix-table.ts. Seen now (review each status against the specification, do not just copy):";
    if (lines.length > 0) throw new Error(`${advice}\n// ${CALLERS.join(", ")}\n${lines.join("\n")}`);
    expect(OPERATION_NAMES.filter((name) => !names.includes(name))).toEqual([]);
    expect(OPERATION_NAMES.filter((name) => listStatuses(name).length !== CALLERS.length)).toEqual([]);
  });
});
