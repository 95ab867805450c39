// An hour of sessions over the private network under load, with the server killed once per minute: ten of ssh (three that count, four that
// echo, three idle until the end), one with bulk data at a limited rate, and one like an editor's, all with the genuine OpenSSH client
// through `slipway ssh`. A round is a minute. A session is lost if its client ends, or if it receives anything other than what was sent.
// The load uses little CPU, so that an hour can run next to other work.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { residentMiB } from "#test/bench/machine.ts";
import { installProgram } from "#test/cli/client-world.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { makeTemplate, makeWorkspace, signInAdmin, waitForBuild } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import {
  BulkSession,
  CountingSession,
  EditingSession,
  IdleSession,
  type Session,
  type Shell,
  TypingSession,
} from "./ssh-sessions.ts";

const KILL_EVERY_MS = 60_000;
/** The kill happens within so many milliseconds from the start of the minute. */
const KILL_WITHIN_MS = 20_000;
/** The longest time for which a killed server is down. */
const MAX_DOWN_MS = 3_000;
/** How long sessions may take to continue after a kill on a busy machine. */
const RESUME_MS = 30_000;
/** Bytes per second in each direction. */
const BULK_RATE = 256 * 1024;
const WORKSPACE = "dev";

/** Signs the command line in, and writes OpenSSH's configuration with it. */
const openShell = async (place: ServerSlot): Promise<Shell> => {
  const home = join(place.scratch, "home");
  const folder = join(place.scratch, "files");
  for (const path of [home, folder]) mkdirSync(path);
  const env = { HOME: home, PATH: installProgram(home) };
  const slipway = async (args: readonly string[], input = ""): Promise<void> => {
    const stdin = new TextEncoder().encode(input);
    const child = Bun.spawn(["slipway", ...args], { env, stdio: [stdin, "ignore", "pipe"] });
    if ((await child.exited) !== 0) throw new Error(`slipway ${args[0]}: ${await child.stderr.text()}`);
  };
  await slipway(["login", place.client.url.href, "--email", ADMIN.email, "--password-stdin"], `${ADMIN.password}\n`);
  await slipway(["config-ssh"]);
  return { config: join(home, ".ssh", "config"), host: `slipway.${WORKSPACE}`, env, folder };
};

const findDaemon = (place: ServerSlot): number => Math.min(...place.processes());

const checkSessions = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using place = await ServerSlot.make();
  await place.start();
  const world = await signInAdmin(place);
  const agents = [{ name: "main" }];
  const template = await makeTemplate(world, "shell", { provisioner: "local", resources: [{ name: "one", agents }] });
  const workspace = await makeWorkspace(world.admin, WORKSPACE, template);
  const shell = await openShell(place);
  const lineSessions: Session[] = [0, 1, 2].map((number) => new CountingSession(shell, number));
  lineSessions.push(...[0, 1, 2, 3].map(() => new TypingSession(shell)));
  const idle = [0, 1, 2].map(() => new IdleSession(shell));
  const bulk = new BulkSession(shell, BULK_RATE);
  const editor = new EditingSession(shell, random);
  const busy = [...lineSessions, bulk, editor];
  const running = [...busy, ...idle];
  await using stack = new AsyncDisposableStack();
  stack.defer(() => {
    for (const session of running) session.kill();
  });
  await until(() => running.every(({ received }) => received > 0), { what: "every session to begin" });
  const [daemon, memoryBefore] = [findDaemon(place), residentMiB(findDaemon(place))];
  const startedAt = performance.now();
  let lateCount = 0;
  for (let kills = 1; kills <= rounds; kills += 1) {
    const minute = startedAt + (kills - 1) * KILL_EVERY_MS;
    await Bun.sleep(Math.max(0, minute + random() * KILL_WITHIN_MS - performance.now()));
    place.currentProcess.kill("SIGKILL");
    await place.currentProcess.ended;
    await Bun.sleep(random() * MAX_DOWN_MS);
    await place.start();
    const receivedBefore = busy.map(({ received }) => received);
    const listStuck = (): string[] =>
      busy.filter(({ received }, i) => received === receivedBefore[i]).map(({ name }) => name);
    await until(() => listStuck().length === 0, { what: "every session to continue", timeoutMs: RESUME_MS }).catch(
      () => {
        lateCount += 1;
        log(`still silent ${RESUME_MS / 1_000} s after kill ${kills}: ${listStuck()}`);
      },
    );
    log(`kill ${kills}: ${running.map(({ received }) => received).join(" ")}`);
    await Bun.sleep(Math.max(0, minute + KILL_EVERY_MS - performance.now()));
  }
  const memoryAfter = residentMiB(daemon);
  const problems = (await Promise.all(running.map((session) => session.finish()))).flat();
  const build = await world.admin.post<{ id: string }>(`/api/v2/workspaces/${workspace.id}/builds`, {
    transition: "delete",
  });
  await waitForBuild(world.admin, build.id);
  assertNoProblems(seed, `${rounds} kills`, problems);
  const sum = (sessions: readonly Session[]): number => sessions.reduce((total, { received }) => total + received, 0);
  const maxSilenceSeconds = Math.max(...busy.map(({ silenceMs }) => silenceMs)) / 1_000;
  const megabytes = (bulk.received / 1e6).toFixed(0);
  return `${rounds} kills in ${rounds} minutes, twelve sessions of OpenSSH (3 count, 4 echo, 3 idle, bulk of ${BULK_RATE / 1024} KiB/s each way, editor), none lost: ${sum(lineSessions)} lines, ${megabytes} MB there and back, ${editor.received} requests, no byte wrong; silence ${maxSilenceSeconds.toFixed(1)} s at most, ${lateCount} times over ${RESUME_MS / 1_000} s; daemon +${(memoryAfter - memoryBefore).toFixed(0)} MiB`;
};

export const checks: readonly Check[] = needs.ssh.found
  ? [{ name: "network: sessions through kills", run: checkSessions }]
  : [];
