// The command lines that VS Code's extension for Coder servers passes to the program it downloads (docs/spec/facts/vscode-plugin.md), in
// processes with the program's name and a real server. Also the real OpenSSH with the configuration that the extension writes.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { unzipSync } from "fflate";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { ADMIN, readAnnouncedUrl, tempDirectory } from "#test/support/server.ts";
import { ECHO, importVersion, makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createWorkspace } from "#test/support/workspaces.ts";
import { openDevWorld, type RunResult, readToken } from "./client-world.ts";

const world = await forFile(openDevWorld());
const admin = new Client(world.server.url, readToken(world));
const folder = join(world.home, "plug in");
const config = join(folder, "config");
mkdirSync(folder, { recursive: true });
/** The program, with the name that the extension gives its download. */
const program = join(folder, "coder-linux-amd64");
writeFileSync(
  program,
  `#!/bin/sh\nexec ${toProgramCommand()
    .map((word) => `'${word}'`)
    .join(" ")} "$@"\n`,
  { mode: 0o755 },
);
const GLOBAL_FLAGS = ["--global-config", config];

const runProgram = async (args: readonly string[], env: Record<string, string> = {}): Promise<RunResult> => {
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true });
  const child = Bun.spawn([program, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", HOME: home, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
};
const runOk = async (args: readonly string[], env: Record<string, string> = {}): Promise<string> => {
  const { code, out, err } = await runProgram(args, env);
  if (code !== 0) throw new Error(`${args.join(" ")}: ${code} ${err}`);
  return out;
};
const signIn = () =>
  runOk([...GLOBAL_FLAGS, "login", "--use-token-as-session", world.server.url.href], {
    CODER_SESSION_TOKEN: readToken(world),
  });

describe("command lines", () => {
  test("[CV-40] program and server report the same version, for which extensions enable all features", async () => {
    const { version } = JSON.parse(await runOk(["version", "--output", "json"])) as { version: string };
    const info = await admin.get<{ version: string }>("/api/v2/buildinfo");
    const header = (await admin.fetch("GET", "/api/v2/buildinfo")).headers.get("x-coder-build-version");
    expect([info.version, header]).toEqual([version, version]);
    expect(version).toMatch(/^v0\.0\.0-devel\+slipway\.\d+\.\d+\.\d+$/);
    expect(await runOk(["version"])).toMatch(/ v\d+\.\d+\.\d+/);
  });

  test("[CV-40] the sign-in is stored in the configuration folder's files, read from there, and removed", async () => {
    await signIn();
    expect(readdirSync(config).sort()).toEqual(["session", "url"]);
    expect(readFileSync(join(config, "url"), "utf8")).toBe(world.server.url.origin);
    expect(readFileSync(join(config, "session"), "utf8")).toBe(readToken(world));
    expect(statSync(join(config, "session")).mode & 0o777).toBe(0o600);
    expect(await runOk([...GLOBAL_FLAGS, "login", "token", "--url", world.server.url.href])).toBe(
      `${readToken(world)}\n`,
    );
    expect(await runOk([...GLOBAL_FLAGS, "whoami"])).toContain("admin");
    // Signing out of a separate folder does not revoke the token, because others may use it.
    writeFileSync(join(config, "session"), "aaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbb");
    expect((await runProgram([...GLOBAL_FLAGS, "logout", "--url", world.server.url.href, "--yes"])).code).toBe(0);
    expect(readdirSync(config)).toEqual([]);
    expect(await runProgram([...GLOBAL_FLAGS, "--url", world.server.url.href, "ls"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("not signed in"),
    });
    // A token is never sent to another server.
    await signIn();
    expect((await runProgram([...GLOBAL_FLAGS, "--url", "http://127.0.0.1:9", "ls"])).err).toContain(
      "not signed in to http://127.0.0.1:9",
    );
  });

  test("[CV-40] every request has the headers from flags and from a command", async () => {
    const headerValues: (string | null)[] = [];
    using proxy = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        headerValues.push(
          `${request.headers.get("x-one")} ${request.headers.get("x-two")} ${request.headers.get("x-three")}`,
        );
        return fetch(new URL(new URL(request.url).pathname, world.server.url), { headers: request.headers });
      },
    });
    const flags = ["--header", "X-One=1", "--header=X-Two=2", "--header-command", 'echo "X-Three=$CODER_URL"'];
    const url = `http://127.0.0.1:${proxy.port}`;
    await runOk(["--url", url, "--token", readToken(world), ...flags, "-v", "whoami"]);
    expect(headerValues).toEqual([`1 2 ${url}`]);
    expect((await runProgram(["--header", "no", "whoami"])).code).toBe(2);
    expect((await runProgram(["--header-command", "exit 3", "whoami"])).err).toContain("exit code 3");
  });

  test("[CV-40] `start` records a reason, and `update` moves the workspace to its template's active version", async () => {
    await signIn();
    await runOk([...GLOBAL_FLAGS, "stop", "admin/dev"]);
    const started = await runProgram([...GLOBAL_FLAGS, "start", "--yes", "--reason", "vscode_connection", "admin/dev"]);
    expect(started).toMatchObject({ code: 0, err: expect.stringContaining("starting dev") });
    const { latest_build } = await admin.get<{ latest_build: { reason: string } }>("/api/v2/users/admin/workspace/dev");
    expect(latest_build.reason).toBe("vscode_connection");
    expect((await runProgram([...GLOBAL_FLAGS, "update", "admin/dev"])).code).toBe(0);
    await runOk([...GLOBAL_FLAGS, "stop", "dev"]);
    expect(await runProgram([...GLOBAL_FLAGS, "ssh", "--disable-autostart", "dev"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("`slipway start dev`"),
    });
    await runOk([...GLOBAL_FLAGS, "start", "dev"]);
  });

  test("[CV-40] an update accepts values for parameters that the new version adds", async () => {
    await signIn();
    const template = await makeTemplate(admin, ECHO);
    const { id } = await createWorkspace(admin, template.id, "sized");
    await awaitBuild(admin, id);
    const parameters = "parameters:\n  - name: size\n  - name: color\n";
    const version = await importVersion(admin, `${ECHO}${parameters}`, { template_id: template.id });
    await admin.patch(`/api/v2/templates/${template.id}/versions`, { id: version.id });
    const update = [...GLOBAL_FLAGS, "update", "--no-wait"];
    const missing = await runProgram([...update, "--parameter", "color=red", "admin/sized"]);
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("size") });
    await runOk([...update, "--parameter", "size=large", "--parameter", "color=a=b", "admin/sized"]);
    const { latest_build } = await awaitWorkspace(admin, id, ({ latest_build, outdated }) => {
      return !outdated && latest_build.status === "running";
    });
    expect(await admin.get(`/api/v2/workspacebuilds/${latest_build.id}/parameters`)).toEqual([
      { name: "color", value: "a=b" },
      { name: "size", value: "large" },
    ]);
  });

  test("[CV-40] `start` succeeds with its build even if start scripts fail, because the extension follows them itself", async () => {
    await signIn();
    const script = "{display_name: fails, script: exit 3, run_on_start: true, start_blocks_login: true}";
    const agent = `{name: main, os: linux, arch: amd64, scripts: [${script}]}`;
    const template = await makeTemplate(admin, `provisioner: local\nresources: [{name: main, agents: [${agent}]}]\n`);
    expect((await runProgram([...GLOBAL_FLAGS, "create", "broken", "--template", template.name])).code).toBe(0);
    await runOk([...GLOBAL_FLAGS, "stop", "admin/broken"]);
    const start = ["start", "--yes", "--reason", "vscode_connection", "admin/broken"];
    expect(await runProgram([...GLOBAL_FLAGS, ...start])).toMatchObject({
      code: 0,
      err: expect.stringContaining("starting broken"),
    });
    await until(async () => {
      const { latest_build } = await admin.get<Workspace>("/api/v2/users/admin/workspace/broken");
      return latest_build.resources[0]?.agents[0]?.lifecycle_state === "start_error";
    });
    expect((await runProgram([...GLOBAL_FLAGS, ...start])).code).toBe(0);
    expect((await runProgram([...GLOBAL_FLAGS, "update", "--parameter", "none=1", "admin/broken"])).code).toBe(1);
    // On a person's command line, the start fails.
    expect(await world.run(["start", "broken"])).toMatchObject({ code: 1, err: expect.stringContaining("failed") });
    await runOk([...GLOBAL_FLAGS, "rm", "broken", "--yes"]);
  });

  test("[CV-40] a terminal in a workspace accepts the extension's input", async () => {
    await signIn();
    await using shell = world.runOnTerminal(`exec '${program}' --global-config '${config}' ssh admin/dev`);
    await shell.until(/[$#] /);
    shell.type("echo $((40 + 2)) of them; exit 3\r");
    await shell.until("42 of them");
    expect(await shell.exited).toBe(3);
  });

  test("[CV-40] speed, ping and network state are returned in the extension's format", async () => {
    await signIn();
    const speed = JSON.parse(
      await runOk([...GLOBAL_FLAGS, "speedtest", "admin/dev", "--output", "json", "-t", "2s"]),
    ) as {
      overall: { throughput_mbits: number };
    };
    const interval = {
      start_time_seconds: expect.any(Number),
      end_time_seconds: expect.any(Number),
      throughput_mbits: expect.any(Number),
    };
    expect(speed.overall.throughput_mbits).toBeGreaterThan(0);
    expect(speed).toMatchObject({
      overall: interval,
      intervals: expect.arrayContaining([expect.objectContaining(interval)]),
    });
    expect(await runOk([...GLOBAL_FLAGS, "ping", "admin/dev", "--count", "1"])).toContain("dev");
    const check = JSON.parse(await runOk([...GLOBAL_FLAGS, "netcheck"])) as Record<string, never>;
    expect(check).toMatchObject({
      derp: {
        severity: "ok",
        regions: {
          999: {
            severity: "ok",
            region: { RegionID: 999, RegionName: expect.any(String), EmbeddedRelay: true },
            node_reports: [
              {
                can_exchange_messages: true,
                round_trip_ping_ms: expect.any(Number),
                stun: { Enabled: false, CanSTUN: false },
              },
            ],
          },
        },
        netcheck: {
          UDP: false,
          IPv4: expect.any(Boolean),
          PreferredDERP: 999,
          RegionLatency: { 999: expect.any(Number) },
        },
      },
      interfaces: {
        severity: "ok",
        interfaces: expect.arrayContaining([expect.objectContaining({ name: "lo", mtu: expect.any(Number) })]),
      },
    });
  });

  test("[CV-40] a workspace's support bundle contains its logs and no secrets", async () => {
    await signIn();
    const file = join(folder, "bundle.zip");
    const args = [...GLOBAL_FLAGS, "support", "bundle", "admin/dev", "--output-file", file, "--yes"];
    await runOk(args);
    const files = unzipSync(new Uint8Array(readFileSync(file)));
    expect(Object.keys(files)).toEqual([
      "client.json",
      "server.json",
      "network.json",
      "workspace.json",
      "builds.json",
      "build.log",
      "agent-main.log",
    ]);
    const text = Object.values(files)
      .map((bytes) => new TextDecoder().decode(bytes))
      .join("");
    expect(text).toContain('"name": "dev"');
    for (const secret of [readToken(world), ADMIN.email]) expect(text).not.toContain(secret);
    expect(await runProgram(args)).toMatchObject({ code: 1, err: expect.stringContaining("EEXIST") });
  });
});

/** Writes the OpenSSH configuration that the extension writes. */
const writeSshConfig = (
  url: URL,
  folder: string,
  flags = "",
): { file: string; prefix: string; info: string; logs: string } => {
  const [info, logs, file] = ["net", "logs", "ssh_config"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const prefix = `coder-vscode.${url.hostname}--`;
  mkdirSync(logs, { recursive: true });
  writeFileSync(
    file,
    `# --- START CODER VSCODE ${url.hostname} ---
Host ${prefix}*
  ConnectTimeout 0
  LogLevel ERROR
  ProxyCommand "${program}" --global-config "${config}" ssh --disable-autostart --stdio --usage-app=vscode --network-info-dir "${info}" --log-dir "${logs}" -v ${flags} --ssh-host-prefix ${prefix} %h
  ServerAliveCountMax 3
  ServerAliveInterval 10
  SetEnv CODER_SSH_SESSION_TYPE=vscode
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
# --- END CODER VSCODE ${url.hostname} ---
`,
  );
  return { file, prefix, info, logs };
};

const findFreePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
};

describe.if(Bun.which("ssh") !== null)("OpenSSH", () => {
  test("[CN-7] reaches a workspace with the extension's configuration, and names network and log files by the pid of ssh", async () => {
    await signIn();
    const { file, prefix, info, logs } = writeSshConfig(world.server.url, folder);
    const host = `${prefix}admin--dev.main`;
    const child = Bun.spawn(["ssh", "-F", file, host, "echo in; cat"], {
      env: { PATH: process.env.PATH ?? "", HOME: folder },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const path = join(info, `${child.pid}.json`);
    await until(() => existsSync(path));
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
      p2p: false,
      latency: expect.any(Number),
      preferred_derp: expect.any(String),
      derp_latency: { "Coder Embedded Relay": expect.any(Number) },
      upload_bytes_sec: expect.any(Number),
      download_bytes_sec: expect.any(Number),
      using_coder_connect: false,
    });
    const [log] = readdirSync(logs).filter((name) => name.endsWith(`-${child.pid}.log`));
    child.stdin.end();
    expect([await child.stdout.text(), await child.exited]).toEqual(["in\n", 0]);
    // When ssh ends, its ProxyCommand removes the file.
    await until(() => !existsSync(path));
    expect(log).toStartWith("coder-ssh-");
    expect(readFileSync(join(logs, log ?? ""), "utf8")).toContain("joined the network");
    expect(readFileSync(join(logs, log ?? ""), "utf8")).not.toContain(readToken(world));
  });

  test("[CN-7] older extensions reach a workspace with their sign-in files", async () => {
    await signIn();
    const { info } = writeSshConfig(world.server.url, folder);
    const command = `"${program}" --global-config "${config}" vscodessh --network-info-dir "${info}" --session-token-file "${config}/session" --url-file "${config}/url" %h`;
    const options = [
      "-F",
      "/dev/null",
      "-o",
      `ProxyCommand ${command}`,
      "-o",
      "StrictHostKeyChecking no",
      "-o",
      "UserKnownHostsFile /dev/null",
      "-o",
      "LogLevel ERROR",
    ];
    for (const host of [
      "coder-vscode.127.0.0.1--admin--dev.main",
      "coder-vscode--admin--dev--main",
      "coder-vscode--admin--dev",
    ]) {
      const child = Bun.spawn(["ssh", ...options, host, "echo $SLIPWAY_WORKSPACE_NAME"], {
        env: { PATH: process.env.PATH ?? "", HOME: folder },
        stdio: ["ignore", "pipe", "inherit"],
      });
      expect([host, await child.stdout.text(), await child.exited]).toEqual([host, "dev\n", 0]);
    }
  });

  test("[CN-7] waits for start scripts or not, depending on the flag", async () => {
    await signIn();
    const { file, prefix } = writeSshConfig(world.server.url, folder, "--wait=%w");
    const text = readFileSync(file, "utf8");
    const run = async (wait: string) => {
      writeFileSync(file, text.replace("%w", wait));
      const child = Bun.spawn(["ssh", "-F", file, `${prefix}admin--dev`, "echo in"], {
        env: { PATH: process.env.PATH ?? "", HOME: folder },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
      return { out, err, code: await child.exited };
    };
    for (const wait of ["yes", "no", "auto"]) expect(await run(wait)).toMatchObject({ out: "in\n", code: 0 });
    expect(await run("perhaps")).toMatchObject({ out: "", err: expect.stringContaining("--wait"), code: 255 });
  });

  test(
    "[CN-8] a session with three forwards and 20 MB each way survives the server being killed",
    async () => {
      using data = tempDirectory();
      const port = await findFreePort();
      const startServer = () =>
        Bun.spawn([...toProgramCommand(), "serve"], {
          env: {
            PATH: process.env.PATH ?? "",
            HOME: data.path,
            SLIPWAY_DATA_DIR: join(data.path, "data"),
            SLIPWAY_ADDRESS: `127.0.0.1:${port}`,
            SLIPWAY_ADMIN_EMAIL: ADMIN.email,
            SLIPWAY_ADMIN_USERNAME: ADMIN.username,
            SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
            SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
            ...(process.env.TEST_RUN_MARK ? { TEST_RUN_MARK: process.env.TEST_RUN_MARK } : {}),
          },
          stdio: ["ignore", "pipe", "ignore"],
        });
      let server = startServer();
      try {
        const url = await readAnnouncedUrl(server.stdout);
        const owner = await new Client(url).signIn(ADMIN.email, ADMIN.password);
        await runOk([...GLOBAL_FLAGS, "login", "--use-token-as-session", url.href], {
          CODER_SESSION_TOKEN: owner.token ?? "",
        });
        await runOk([...GLOBAL_FLAGS, "create", "dev"]);
        const { file, prefix } = writeSshConfig(url, data.path);
        const apps = [1, 2, 3].map((number) =>
          Bun.serve({
            port: 0,
            hostname: "127.0.0.1",
            fetch: async (request) => new Response(`${number} ${(await request.bytes()).byteLength}`),
          }),
        );
        const ports = await Promise.all(apps.map(findFreePort));
        const forwards = apps.flatMap((app, index) => ["-L", `${ports[index]}:127.0.0.1:${app.port}`]);
        const args = ["-F", file, "-o", `ControlPath=${data.path}/control`];
        const host = `${prefix}admin--dev.main`;
        const env = { PATH: process.env.PATH ?? "", HOME: data.path };
        const master = Bun.spawn(["ssh", ...args, "-o", "ControlMaster=yes", ...forwards, host, "echo ready; cat"], {
          env,
          stdio: ["pipe", "pipe", "inherit"],
        });
        const output = master.stdout.getReader();
        const readOutput = async () => new TextDecoder().decode((await output.read()).value);
        expect(await readOutput()).toBe("ready\n");
        const block = crypto.getRandomValues(new Uint8Array(20_000_000 / 400));
        const bytes = Buffer.concat(Array.from({ length: 400 }, () => block));
        const digest = new Bun.CryptoHasher("sha1").update(bytes).digest("hex");
        const transfer = async (): Promise<void> => {
          const upload = Bun.spawn(["ssh", ...args, host, "tee up | sha1sum"], {
            env,
            stdio: [bytes, "pipe", "inherit"],
          });
          expect((await upload.stdout.text()).slice(0, 40)).toBe(digest);
          const download = Bun.spawn(["ssh", ...args, host, "cat up"], { env, stdio: ["ignore", "pipe", "inherit"] });
          expect(new Bun.CryptoHasher("sha1").update(await download.stdout.bytes()).digest("hex")).toBe(digest);
        };
        const fetchThroughForwards = async (): Promise<string[]> =>
          Promise.all(
            ports.map(async (port) =>
              (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "hello" })).text(),
            ),
          );
        await transfer();
        expect(await fetchThroughForwards()).toEqual(["1 5", "2 5", "3 5"]);

        server.kill("SIGKILL");
        await server.exited;
        server = startServer();
        await readAnnouncedUrl(server.stdout);
        master.stdin.write("still here\n");
        master.stdin.flush();
        expect(await readOutput()).toBe("still here\n");
        expect(await fetchThroughForwards()).toEqual(["1 5", "2 5", "3 5"]);
        await transfer();
        master.stdin.end();
        expect(await master.exited).toBe(0);
        await owner.delete("/api/v2/users/me/workspace/dev" as never).catch(() => {});
        await runOk([...GLOBAL_FLAGS, "rm", "dev", "--yes"]);
        for (const app of apps) app.stop(true);
      } finally {
        server.kill("SIGTERM");
        await server.exited;
      }
    },
    scaleTimeout(180_000),
  );
});
