// Audit entries of rejected changes: their timing, their independence from the response, and their rate limit.
import { afterEach, expect, test } from "bun:test";
import { configureLogging, resetLogging } from "#base/log.ts";
import { lazyOrigin, withOrigin } from "#base/origin.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { RejectedChanges } from "#src/api/audit/rejections.ts";
import { settingTarget } from "#src/api/audit/setting-targets.ts";
import { writes } from "#src/api/audit/targets.ts";
import { Operations, parseVariables } from "#src/api/http/operations.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { openStoredData } from "#test/support/stored.ts";

afterEach(resetLogging);

/** Captures the messages of warnings logged from now on. */
const captureWarnings = (): string[] => {
  const logLines: string[] = [];
  const write = (line: string): void => void logLines.push((JSON.parse(line) as { message: string }).message);
  configureLogging({ level: "warn", format: "json", write });
  return logLines;
};

/** Creates a RejectedChanges whose store counts commits; the first `failingCommits` commits fail. */
const createRecorder = (failingCommits = 0) => {
  const clock = new ManualClock();
  const state = { clock, commits: 0 };
  const commit = async (): Promise<void> => {
    state.commits += 1;
    if (state.commits <= failingCommits) throw new CommitError("full", "no space");
  };
  const rejections = new RejectedChanges({ store: { commit } as unknown as Store, clock });
  const reject = (user_id: string, status = 403): void => {
    const origin = lazyOrigin(() => ({ user_id, ip: null, user_agent: "", request_id: "r" }));
    const request = new Request("http://localhost/api/v2/audit/retention", { method: "PUT" });
    const target = writes(settingTarget("audit_settings", "retention"));
    withOrigin(origin, () => rejections.note(request, status, () => ({ target, params: {} })));
  };
  return Object.assign(state, { rejections, reject });
};

test("[AU-18] writes nothing before the response is sent, and continues after a failed write", async () => {
  const recorder = createRecorder(1);
  recorder.reject("ann");
  recorder.reject("bob");
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  expect(recorder.commits).toBe(0);
  await recorder.rejections.flush();
  expect(recorder.commits).toBe(2);
});

test("[AU-19] records at most sixty rejected changes a minute for each caller", async () => {
  const logLines = captureWarnings();
  const recorder = createRecorder();
  for (let i = 0; i < 100; i++) recorder.reject("ann");
  recorder.reject("bob");
  await recorder.rejections.flush();
  expect(recorder.commits).toBe(61);
  expect(logLines).toEqual(["ann had 60 rejected changes in a minute; further ones are not audited"]);
  recorder.clock.advance(60_001);
  recorder.reject("ann");
  await recorder.rejections.flush();
  expect(recorder.commits).toBe(62);
});

test("[AU-19] drops entries beyond a thousand pending ones with one warning, and resumes once they are written", async () => {
  const logLines = captureWarnings();
  const recorder = createRecorder();
  for (let i = 0; i < 1_200; i++) recorder.reject(`user-${i}`);
  await recorder.rejections.flush();
  expect(recorder.commits).toBe(1_000);
  expect(logLines).toHaveLength(1);
  recorder.reject("late");
  await recorder.rejections.flush();
  expect(recorder.commits).toBe(1_001);
});

test("[AU-17] does not record server errors and rate-limited requests", async () => {
  const recorder = createRecorder();
  for (const status of [200, 303, 401, 405, 413, 415, 429, 500, 503, 507]) recorder.reject("ann", status);
  await recorder.rejections.flush();
  expect(recorder.commits).toBe(0);
});

test("[AU-17] finds the operation of a request by its route, and its path parameters", () => {
  const routes = [
    "DELETE /api/v2/users/:user",
    "DELETE /api/v2/users/:user/keys/:key",
    "DELETE /api/v2/users/:user/keys/own",
  ]
    .map((name) => name.split(" "))
    .map(([method, path]) => ({ method, path, hooks: {} }));
  const operations = new Operations(routes as never);
  const findParams = (method: string, path: string) => {
    const operation = operations.find(method, path);
    return operation && parseVariables(operation, path);
  };
  expect(findParams("DELETE", "/api/v2/users/a%20b/keys/x/")).toEqual({ user: "a b", key: "x" });
  expect(findParams("DELETE", "/api/v2/users/ann/keys/own")).toEqual({ user: "ann" });
  expect(findParams("DELETE", "/api/v2/users/%zz")).toEqual({ user: "" });
  expect(findParams("GET", "/api/v2/users/ann")).toBeUndefined();
  expect(findParams("PUT", "/api/v2/nothing/of/ours")).toBeUndefined();
});

testInProcess("[AU-18] a server writes pending entries before it stops", async () => {
  using directory = tempDirectory();
  {
    await using server = await startTestServer({ directory: directory.path });
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const invalidSettings = { days: 1, sign_in_days: null, kinds: { cake: 1 } };
    expect((await admin.fetch("PUT", "/api/v2/audit/retention", invalidSettings)).status).toBe(400);
  }
  await using stored = await openStoredData(directory.path);
  const sql = "select action, resource_type, status_code from audit_logs where status_code >= 400";
  expect(await stored.rows(sql)).toEqual([["write", "audit_settings", 400]]);
});
