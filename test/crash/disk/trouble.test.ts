// How a server reports a damaged database and a full disk: in responses, in its log, and to the operator.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { closeSync, openSync, writeSync } from "node:fs";
import { Client } from "#src/client.ts";
import { startServe } from "#test/api/edge/serve-process.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { testNeeding } from "#test/support/needs.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { SmallDisk, smallDiskSkipReason } from "./small-disk.ts";

const PAGE_BYTES = 4096;
const NEXT_STEP = "Then restore a backup with `slipway restore`, or copy what can be read with `slipway salvage`.";

/** Overwrites the first pages of this table and its indexes, or the first page of the whole file. */
const damage = (file: string, table: string | undefined): void => {
  const db = new Database(file);
  db.run("pragma wal_checkpoint(truncate)");
  const roots = db.query("select rootpage from sqlite_schema where tbl_name = ?").values(table ?? "");
  db.close();
  const descriptor = openSync(file, "r+");
  for (const page of table === undefined ? [1] : roots.map(([root]) => Number(root)))
    writeSync(descriptor, Buffer.alloc(PAGE_BYTES, 0xaa), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES);
  closeSync(descriptor);
};

const signIn = async (url: URL): Promise<Client> => {
  const { session_token } = await new Client(url, undefined).post("/api/v2/users/login", {
    email: ADMIN.email,
    password: ADMIN.password,
  });
  return new Client(url, session_token);
};

testSingleServer("sqlite")("[OP-21] readyz, log and doctor name a damaged table and the next step", async () => {
  using directory = tempDirectory();
  const data = `${directory.path}/data`;
  const seeded = await startTestServer({ directory: data });
  await seeded[Symbol.asyncDispose]();
  damage(`${data}/slipway.db`, "user_skills");
  await using serve = await startServe(directory.path);
  const client = await signIn(serve.url);
  for (let i = 0; i < 20; i++) {
    const response = await client.fetch("GET", "/api/experimental/users/me/skills");
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({
      message: "The server's database is damaged. Its administrator must restore a backup.",
    });
  }
  const message = await until(async () => {
    const { status, message } = await fetchReadiness(serve.url);
    return status === 503 && message.includes("user_skills") && message;
  });
  expect(message).toMatch(/^The database has been damaged since \d{4}-.* \(user_skills\)\. Stop the server\./);
  expect(message).toContain(NEXT_STEP);
  const doctor = await runVerb(["doctor", "--data-dir", data, "--address", "127.0.0.1:0"]);
  expect(doctor.code).toBe(1);
  expect(doctor.printed).toMatch(/WRONG +database +damaged in user_skills: .*slipway salvage/);
  serve.child.kill("SIGTERM");
  await serve.child.exited;
  const lines = (await serve.errors).split("\n").filter((line) => line.includes("damaged"));
  expect(lines.map((line) => JSON.parse(line).message)).toEqual([
    expect.stringContaining(NEXT_STEP),
    expect.stringMatching(/^the database is damaged in user_skills: /),
  ]);
});

testSingleServer("sqlite")("[OP-21] a start on a file that is not a database names the next step", async () => {
  using directory = tempDirectory();
  const data = `${directory.path}/data`;
  const seeded = await startTestServer({ directory: data });
  await seeded[Symbol.asyncDispose]();
  damage(`${data}/slipway.db`, undefined);
  const { code, errors } = await runVerb(["serve", "--data-dir", data, "--address", "127.0.0.1:0"]);
  expect(code).toBe(1);
  expect(errors).toContain("the database cannot be used: file is not a database");
  expect(errors).toContain(NEXT_STEP);
});

const disk = { found: smallDiskSkipReason() === "", reason: smallDiskSkipReason(), file: "" };

testNeeding(
  [disk],
  "[OP-22] a full disk is logged once a minute, and readyz reports it until there is space again",
  async () => {
    using directory = tempDirectory();
    const data = `${directory.path}/data`;
    await using smallDisk = await SmallDisk.mount(data, 24);
    await using serve = await startServe(directory.path, {}, { through: smallDisk.commandPrefix });
    const client = await signIn(serve.url);
    expect(await fetchReadiness(serve.url)).toEqual({ status: 200, message: "Ready." });
    const rename = async (): Promise<number> => {
      const profile = { name: `Ada ${Math.random()} `.padEnd(100, "x") };
      return (await client.fetch("PUT", "/api/v2/users/me/profile", { username: ADMIN.username, ...profile })).status;
    };
    smallDisk.fill();
    await until(async () => (await rename()) === 507, { what: "a rejected write" });
    for (let i = 0; i < 100; i++) expect([200, 507]).toContain(await rename());
    await until(async () => (await rename()) === 507);
    expect(await fetchReadiness(serve.url)).toEqual({
      status: 503,
      message: expect.stringMatching(/^The disk has been full since .*: nothing is saved\. Free space on it\.$/),
    });
    smallDisk.free();
    await until(async () => (await fetchReadiness(serve.url)).status === 200, {
      what: "readyz to recover without another write",
    });
    expect(await rename()).toBe(200);
    serve.child.kill("SIGTERM");
    await serve.child.exited;
    const lines = (await serve.errors).split("\n").filter((line) => line !== "");
    expect(lines.map((line) => JSON.parse(line).message)).toEqual([
      expect.stringContaining("the disk is full: nothing is saved"),
      "the disk takes writes again",
    ]);
  },
);

const fetchReadiness = async (url: URL): Promise<{ status: number; message: string }> => {
  const response = await fetch(new URL("/readyz", url));
  const { message } = (await response.json()) as { message: string };
  return { status: response.status, message };
};
