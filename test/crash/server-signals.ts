// A server that is paused or stopped during use, and a second server on the same directory (RELIABILITY checks 8 and 14).
import { join } from "node:path";
import type { ClientSocket } from "#src/client.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { command } from "./server.ts";
import { assertNoProblems, Torture } from "./server-crash.ts";
import { withTimeout } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

/** Checks that a second server on the same directory fails with a message, even while the first is paused, and that the first continues. */
export const checkTwoServers = async ({ seed, log }: CheckOptions): Promise<string> => {
  await using torture = await Torture.make(seed, { agents: 2, builders: 1, daemons: 0 });
  const { place } = torture;
  torture.begin();
  await torture.progress(20);
  const expectRejection = async (when: string): Promise<void> => {
    const { code, errors } = await runSecondServer(place.directory);
    log(`${when}: exit ${code}, ${errors.trim()}`);
    assertNoProblems(seed, when, code === 1 ? [] : [`a second server ended with ${code}`]);
    assertNoProblems(
      seed,
      when,
      errors.includes(`${place.directory} is in use`) ? [] : [`a second server printed ${errors}`],
    );
  };
  await expectRejection("a second server");
  await torture.progress(20);
  place.currentProcess.kill("SIGSTOP");
  await expectRejection("a second server next to a paused one");
  place.currentProcess.kill("SIGCONT");
  await torture.progress(20);
  assertNoProblems(seed, "the end", await torture.finish());
  await place.stop();
  assertNoProblems(seed, "the end", await findDatabaseProblems(place.directory));
  return `two refusals, ${torture.acknowledged} acknowledged calls of the first server, none lost`;
};

/** Starts a second server on a directory in use, and returns its exit code and output. */
const runSecondServer = async (directory: string): Promise<{ code: number; errors: string }> => {
  const child = Bun.spawn([...command(), "serve", "--data-dir", directory, "--address", "127.0.0.1:0"], {
    env: { PATH: Bun.env.PATH ?? "", HOME: join(directory, "..") },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const errors = await new Response(child.stderr).text();
  return { code: await child.exited, errors };
};

/** Pauses the server for `seconds`: calls succeed late or have an unknown result, and nothing is duplicated. */
export const checkFrozenServer = async ({ rounds, seed, log }: CheckOptions, seconds = 5): Promise<string> => {
  await using torture = await Torture.make(seed, { agents: 3, builders: 2, daemons: 1 });
  const { currentProcess } = torture.place;
  torture.begin();
  for (let round = 1; round <= rounds; round++) {
    await torture.progress(1 + Math.floor(torture.random() * 60));
    currentProcess.kill("SIGSTOP");
    await Bun.sleep(seconds * 1000);
    currentProcess.kill("SIGCONT");
    await torture.progress(20);
    assertNoProblems(seed, `freeze ${round}`, await torture.findProblems());
    log(`freeze ${round}: ${torture.acknowledged} calls acknowledged`);
  }
  assertNoProblems(seed, "the end", await torture.finish());
  await torture.place.stop();
  assertNoProblems(seed, "the end", await findDatabaseProblems(torture.place.directory));
  return `${rounds} pauses of ${seconds} s, ${torture.acknowledged} acknowledged calls, none lost or duplicated`;
};

/** Stops the server with SIGTERM under load: followers are notified, everything acknowledged is stored, and the server exits in time. */
export const serverStop = async ({ rounds, seed, log }: CheckOptions, followers = 1000): Promise<string> => {
  await using torture = await Torture.make(seed, { agents: 3, builders: 2, daemons: 1 });
  const { place, world, writers } = torture;
  torture.begin();
  let slowestMs = 0;
  for (let round = 1; round <= rounds; round++) {
    const sockets: ClientSocket[] = [];
    for (let i = 0; i < followers; i++) {
      const agent_id = writers[i % writers.length]?.options.agent_id;
      const path = `/api/v2/workspaceagents/${agent_id}/logs?follow=true&after=${2 ** 40}`;
      sockets.push(await withTimeout("a follower's connection", world.admin.socket(path)));
    }
    await torture.progress(1 + Math.floor(torture.random() * 60));
    const startedAt = performance.now();
    const { currentProcess } = place;
    await withTimeout("the server's end", place.stop());
    const stopMs = performance.now() - startedAt;
    slowestMs = Math.max(slowestMs, stopMs);
    const closes = await withTimeout("the followers' ends", Promise.all(sockets.map(({ closed }) => closed)));
    const codes = new Set(closes.map(({ code }) => code));
    const problems = stopMs > 5000 ? [`the stop took ${stopMs.toFixed(0)} ms`] : [];
    if (codes.size !== 1 || !codes.has(1001)) problems.push(`followers were closed with ${[...codes]}`);
    if (/"level":"(error|fatal)"|unhandled/i.test(currentProcess.errors))
      problems.push(`the server logged errors: ${currentProcess.errors.slice(0, 300)}`);
    assertNoProblems(seed, `stop ${round}`, [...problems, ...(await findDatabaseProblems(place.directory))]);
    await torture.restart();
    assertNoProblems(seed, `stop ${round}`, await torture.findProblems());
    log(`stop ${round}: ${sockets.length} followers notified, exited after ${stopMs.toFixed(0)} ms`);
  }
  assertNoProblems(seed, "the end", await torture.finish());
  return `${rounds} stops with ${followers} followers, ${torture.acknowledged} acknowledged calls, none lost, at most ${slowestMs.toFixed(0)} ms`;
};

export const checks: readonly Check[] = [
  { name: "server: two on one directory", run: checkTwoServers },
  { name: "server: frozen", run: checkFrozenServer },
  { name: "server: orderly stop", run: serverStop },
];
