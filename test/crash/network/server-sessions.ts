// A loaded hour of sessions over the private network, with the server killed again and again: ten of ssh, one with bulk, one as an editor has
// it, all by the genuine OpenSSH client through `slipway ssh`. A round is a minute. A session is lost when its client ends, or when
// anything it sees is not what was sent.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { residentMiB } from "#test/bench/machine.ts";
import { programIn } from "#test/cli/client-world.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { ServerPlace } from "../server.ts";
import { mustBeRight } from "../server-crash.ts";
import { endedBuild, enter, makeTemplate, makeWorkspace } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { Bulk, Counting, Editing, type Session, type Shell, Typing } from "./ssh-sessions.ts";

const KILL_EVERY_MS = 25_000;
/** A server that was killed may be away for so long. */
const AWAY_MS = 3_000;
const BULK_RATE = 4e6;
const WORKSPACE = "dev";

/** Signs the command line in and lets it write OpenSSH's configuration. */
const shellOf = async (place: ServerPlace): Promise<Shell> => {
  const home = join(place.scratch, "home");
  const folder = join(place.scratch, "files");
  for (const made of [home, folder]) mkdirSync(made);
  const env = { HOME: home, PATH: programIn(home) };
  const slipway = async (args: readonly string[], input = ""): Promise<void> => {
    const stdin = new TextEncoder().encode(input);
    const child = Bun.spawn(["slipway", ...args], { env, stdio: [stdin, "ignore", "pipe"] });
    if ((await child.exited) !== 0) throw new Error(`slipway ${args[0]}: ${await child.stderr.text()}`);
  };
  await slipway(["login", place.client.url.href, "--email", ADMIN.email, "--password-stdin"], `${ADMIN.password}\n`);
  await slipway(["config-ssh"]);
  return { config: join(home, ".ssh", "config"), host: `slipway.${WORKSPACE}`, env, folder };
};

const daemonOf = (place: ServerPlace): number => Math.min(...place.processes());

const sessions = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using place = await ServerPlace.make();
  await place.start();
  const world = await enter(place);
  const agents = [{ name: "main" }];
  const template = await makeTemplate(world, "shell", { provisioner: "local", resources: [{ name: "one", agents }] });
  const workspace = await makeWorkspace(world.admin, WORKSPACE, template);
  const shell = await shellOf(place);
  const running: Session[] = [];
  for (let i = 0; i < 5; i += 1) running.push(new Counting(shell, i), new Typing(shell));
  running.push(new Bulk(shell, BULK_RATE), new Editing(shell, random));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => {
    for (const one of running) one.kill();
  });
  await until(() => running.every(({ seen }) => seen > 0), { what: "every session to have begun" });
  const [daemon, before] = [daemonOf(place), residentMiB(daemonOf(place))];
  const end = performance.now() + rounds * 60_000;
  let kills = 0;
  while (performance.now() < end) {
    await Bun.sleep(KILL_EVERY_MS * (0.7 + 0.6 * random()));
    place.newest.kill("SIGKILL");
    await place.newest.ended;
    kills += 1;
    await Bun.sleep(random() * AWAY_MS);
    await place.start();
    const was = running.map(({ seen }) => seen);
    await until(() => running.every(({ seen }, i) => seen > (was[i] ?? 0)), { what: "every session to go on" }).catch(
      ({ message }: Error) =>
        log(`${message}: ${running.filter(({ seen }, i) => seen === was[i]).map(({ name }) => name)}`),
    );
    log(`kill ${kills}: ${running.map(({ seen }) => seen).join(" ")}`);
  }
  const after = residentMiB(daemon);
  const wrong = (await Promise.all(running.map((one) => one.finish()))).flat();
  const build = await world.admin.post<{ id: string }>(`/api/v2/workspaces/${workspace.id}/builds`, {
    transition: "delete",
  });
  await endedBuild(world.admin, build.id);
  mustBeRight(seed, `${kills} kills`, wrong);
  const sum = (from: number, to: number): number => running.slice(from, to).reduce((all, { seen }) => all + seen, 0);
  const silence = Math.max(...running.map((one) => one.silence)) / 1_000;
  return `${kills} kills in ${rounds} minutes under twelve sessions of OpenSSH, none lost: ${sum(0, 10)} lines, ${(sum(10, 11) / 1e6).toFixed(0)} MB both ways, ${sum(11, 12)} requests of an editor, no byte wrong; at most ${silence.toFixed(1)} s of silence; the daemon grew by ${(after - before).toFixed(0)} MiB`;
};

export const checks: readonly Check[] = needs.ssh.found
  ? [{ name: "network: sessions through kills", run: sessions }]
  : [];
