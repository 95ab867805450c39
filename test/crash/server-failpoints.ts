// The server kills itself at each failpoint in its code, under load, and is restarted without the failpoint (RELIABILITY check 2). The
// names come from the source, so that no failpoint remains untested.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { FAILPOINTS, type Failpoint } from "#base/failpoint.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { ServerSlot } from "./server.ts";
import { assertNoProblems, Torture } from "./server-crash.ts";
import { signInAdmin, templateTar } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

/** On PostgreSQL, there are no checkpoints, and uploads are rows. */
export const TESTED_FAILPOINTS = FAILPOINTS.filter(
  (name) => !usesPostgres || !["in_checkpoint", "in_upload"].includes(name),
);

/** Kills a server at every failpoint `rounds` times. Returns a one-line summary. */
export const checkServerFailpoints = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const underLoad = TESTED_FAILPOINTS.filter((name) => name !== "in_migration" && name !== "in_upload");
  await checkMigrationFailpoint();
  log("in_migration: the next start completes it");
  if (TESTED_FAILPOINTS.includes("in_upload")) {
    await checkUploadFailpoint();
    log("in_upload: no partial upload is visible");
  }
  await using torture = await Torture.make(seed, { agents: 3, builders: 2, daemons: 0 });
  await torture.place.stop();
  torture.begin();
  for (let round = 1; round <= rounds; round++) {
    for (const name of underLoad) {
      const point = `${name}:${1 + Math.floor(torture.random() * 60)}`;
      await checkFailpoint(torture, seed, point);
      log(
        `${point}: ${torture.acknowledged} calls acknowledged, back in ${torture.place.starts.at(-1)?.toFixed(0)} ms`,
      );
    }
  }
  await torture.restart();
  assertNoProblems(seed, "the end", await torture.finish());
  assertNoProblems(seed, "the end", torture.place.findSlowStarts());
  return `${rounds} times ${TESTED_FAILPOINTS.length} failpoints, ${torture.acknowledged} acknowledged calls, none lost`;
};

/** Lets the server die at the failpoint under load, checks the database and a restart, and leaves the server stopped. */
const checkFailpoint = async (torture: Torture, seed: number, point: string): Promise<void> => {
  const { place } = torture;
  const server = await place
    .start({ env: { ...Torture.env, SLIPWAY_FAILPOINT: point } })
    .catch(() => place.currentProcess);
  const timeout = setTimeout(() => server.kill("SIGTERM"), 20_000);
  const { signal, code, errors } = await server.ended;
  clearTimeout(timeout);
  if (signal !== "SIGKILL") throw new Error(`seed ${seed}: ${point} was not reached: ${signal || code} ${errors}`);
  assertNoProblems(seed, point, await findDatabaseProblems(place.directory));
  const restarted = await torture.restart();
  await torture.progress(5);
  assertNoProblems(seed, point, await torture.findProblems());
  restarted.kill("SIGKILL");
  await restarted.ended;
};

/** Checks that a server that dies in the first migration of an empty directory completes it at the next start. */
const checkMigrationFailpoint = async (): Promise<void> => {
  await using place = await ServerSlot.make({ isNew: true });
  const { signal } = await place.spawn({ env: toFailpointEnv("in_migration") }).ended;
  if (signal !== "SIGKILL") throw new Error("in_migration was not reached");
  await place.start();
  await signInAdmin(place);
  await place.stop();
  assertNoProblems(0, "in_migration", await findDatabaseProblems(place.directory));
};

/** Checks that an upload is never visible, and is removed at the next start, if the server dies before the file gets its name. */
const checkUploadFailpoint = async (): Promise<void> => {
  await using place = await ServerSlot.make();
  await place.start();
  const { admin } = await signInAdmin(place);
  await place.stop();
  const server = await place.start({ env: toFailpointEnv("in_upload") });
  const bytes = await templateTar({ provisioner: "echo", resources: [{ name: "one" }] });
  const headers = { "content-type": "application/x-tar" };
  const send = () => admin.fetch("POST", "/api/v2/files", bytes, { headers });
  const response = await send().catch(() => undefined);
  const { signal } = await server.ended;
  if (signal !== "SIGKILL" || response) throw new Error(`in_upload was not reached: ${signal} ${response?.status}`);
  const incoming = join(place.directory, "files", "incoming");
  if (readdirSync(incoming).length !== 1) throw new Error("the interrupted upload left no file");
  await place.start();
  const problems: string[] = [];
  if (readdirSync(incoming).length > 0) problems.push("the interrupted upload's file remains after a restart");
  const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  if (existsSync(join(place.directory, "files", hash.slice(0, 2), hash)))
    problems.push("the interrupted upload is stored");
  const { status } = await admin.fetch("GET", `/api/v2/files/${crypto.randomUUID()}`);
  if (status !== 404) problems.push(`an unknown file returns ${status}`);
  if (!(await send()).ok) problems.push("the same upload is rejected after the restart");
  assertNoProblems(0, "in_upload", problems);
};

const toFailpointEnv = (name: Failpoint): Record<string, string> => ({ SLIPWAY_FAILPOINT: name });

export const checks: readonly Check[] = [{ name: "server: failpoints", run: checkServerFailpoints }];
