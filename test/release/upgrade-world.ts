// A simulated machine with an installed server, a service manager and a release server. `systemctl` is a script that starts and stops a real
// server.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { printPublicKey } from "#base/minisign.ts";
import { Client } from "#src/client.ts";
import type { ReleaseOptions } from "#src/release/release.ts";
import { generateSigningKey } from "#src/release/signing-key.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { createTestRelease } from "#test/support/release.ts";
import { ADMIN } from "#test/support/server.ts";

const NEXT_PROGRAM = join(import.meta.dir, "next-version.ts");
export const NEXT_VERSION = "9.9.9";

const toScript = (command: readonly string[]): string => `#!/bin/sh\nexec ${command.join(" ")} "$@"\n`;
const NEXT_COMMAND = [process.execPath, "--no-env-file", NEXT_PROGRAM];

/** Scripts that replace a release's programs. */
export const PROGRAMS = {
  working: toScript(NEXT_COMMAND),
  /** Changes the database and never becomes ready. */
  failing: `#!/bin/sh\nif [ "$1" != serve ]; then exec ${NEXT_COMMAND.join(" ")} "$@"; fi\nshift\n${NEXT_COMMAND.join(" ")} migrate "$@"\nexit 1\n`,
  /** The current version's program. */
  current: toScript(toProgramCommand()),
} as const;

const systemctl = (folder: string, program: string, command: string, environment: string): string => `#!/bin/sh
running() { [ -s ${folder}/pid ] && kill -0 "$(cat ${folder}/pid)" 2>/dev/null; }
start() { setsid env ${environment} ${command} >>${folder}/log 2>&1 </dev/null & echo $! >${folder}/pid; }
stop() { if running; then kill "$(cat ${folder}/pid)"; while running; do sleep 0.05; done; fi; }
case $1 in
show)
  if running; then state=active; else state=failed; fi
  printf 'LoadState=loaded\\nActiveState=%s\\nMainPID=%s\\nNRestarts=0\\nExecStart={ path=%s ; argv[]=%s ; ignore_errors=no ; }\\nEnvironment=%s\\n' $state "$(cat ${folder}/pid)" ${program} '${command}' '${environment}'
  ;;
start) start ;;
stop) stop ;;
restart) stop; start ;;
esac
`;

const findFreePort = (): number => {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = server;
  server.stop(true);
  return port;
};

/** Creates the machine, with an installed server that `runSystemctl("start")` starts. */
export const openUpgradeWorld = async () => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-upgrade-"));
  const [bin, installFolder, data] = [join(folder, "bin"), join(folder, "place"), join(folder, "data")];
  for (const path of [bin, installFolder]) mkdirSync(path);
  const program = join(installFolder, "slipway");
  writeFileSync(program, PROGRAMS.current, { mode: 0o755 });
  const key = generateSigningKey();
  const port = findFreePort();
  const url = new URL(`http://127.0.0.1:${port}`);
  let findResponse: (name: string) => Response | undefined = () => undefined;
  let out = "";
  const requests: string[] = [];
  const releases = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const name = new URL(request.url).pathname.slice(1);
      requests.push(name);
      const customResponse = findResponse(name);
      if (customResponse) return customResponse;
      const path = join(out, name);
      return existsSync(path) ? new Response(Bun.file(path)) : new Response("no", { status: 404 });
    },
  });
  const service: Record<string, string> = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: folder,
    TEST_RUN_MARK: process.env.TEST_RUN_MARK ?? "",
    SLIPWAY_RELEASE_URL: releases.url.href,
    SLIPWAY_RELEASE_KEY: printPublicKey(key),
    SLIPWAY_ADMIN_EMAIL: ADMIN.email,
    SLIPWAY_ADMIN_USERNAME: ADMIN.username,
    SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
    SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
  };
  const command = `${program} serve --data-dir=${data} --address=127.0.0.1:${port}`;
  const variables = Object.entries(service).map(([name, value]) => `"${name}=${value}"`);
  writeFileSync(join(bin, "systemctl"), systemctl(folder, program, command, variables.join(" ")), {
    mode: 0o755,
  });
  const runSystemctl = (action: string): void =>
    void Bun.spawnSync([join(bin, "systemctl"), action, "slipway.service"], { env: service });
  const created: Disposable[] = [];
  return {
    folder,
    installFolder,
    data,
    program,
    /** The key that the machine trusts. */
    publicKey: printPublicKey(key),
    requests: requests,
    runSystemctl,
    url,
    /** Publishes a release. */
    async release(options: Partial<ReleaseOptions> & { program?: string } = {}) {
      const release = await createTestRelease(
        Object.assign({ version: NEXT_VERSION, key, only: ["programs"] as const }, options),
      );
      created.push(release);
      out = release.out;
      return release;
    },
    /** Replaces the release server's responses. Files for which `respond` returns undefined are served as usual. */
    setResponses(respond: (name: string) => Response | undefined) {
      findResponse = respond;
    },
    /** Runs `slipway upgrade` without settings, as root would. */
    async upgrade(
      args: readonly string[] = [],
      env: Readonly<Record<string, string>> = {},
      command: readonly string[] = toProgramCommand(),
    ) {
      const { PATH = "", HOME = "", TEST_RUN_MARK = "" } = service;
      const child = Bun.spawn([...command, "upgrade", "--program", program, ...args], {
        cwd: folder,
        env: Object.assign({ PATH, HOME, TEST_RUN_MARK }, env),
        stdio: ["ignore", "pipe", "pipe"],
      });
      const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      return { code: child.signalCode ?? code, text: output + errors };
    },
    version: (): string => Bun.spawnSync([program, "version", "--json"], { env: service }).stdout.toString(),
    /** Signs in, which requires the server's data. Returns the server's version. */
    async signIn(): Promise<string> {
      const client = await new Client(url).signIn(ADMIN.email, ADMIN.password);
      return (await client.get<{ version: string }>("/api/v2/buildinfo")).version;
    },
    listInstalled: (): string[] => readdirSync(installFolder).sort(),
    log: (): string => readFileSync(join(folder, "log"), "utf8"),
    async [Symbol.asyncDispose]() {
      if (existsSync(join(bin, "systemctl"))) runSystemctl("stop");
      await releases.stop(true);
      for (const release of created) release[Symbol.dispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
