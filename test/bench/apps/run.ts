// `SLIPWAY_TEST_EDITORS=FOLDER bun test/bench/apps/run.ts [--seconds 20] [--connections 64] [--only NAME]`: loads real apps at their own
// hosts on a server with default settings, compares every response with the app's own, and at the same time transfers 100 MB through their
// WebSockets in both directions. Prints a table. Exits with 1 if a response or a byte differed, or if memory grew.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  echoBytes,
  type LoadRequest,
  loadApp,
  MemoryWatch,
  openSocket,
  type Target,
} from "#test/api/applications/load.ts";
import { openLoadWorld, startListening } from "#test/api/applications/load-world.ts";
import { findFreePort } from "#test/crash/server.ts";
import { needs } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { CodeServerFiles } from "./code-server.ts";
import { JupyterKernel } from "./jupyter.ts";
import { SCRIPT, StreamlitSession } from "./streamlit.ts";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    connections: { type: "string", default: "64" },
    only: { type: "string", multiple: true },
  },
});

const MEGABYTE = 1_000_000;
const TOTAL_BYTES = 100 * MEGABYTE;
/** The sizes of a notebook cell and of an editor's file. */
const [CELL_BYTES, FILE_BYTES] = [5 * MEGABYTE, 20 * MEGABYTE];
/** Allowed memory growth between the first and the last third of a load. */
const MAX_GROWTH_MIB = 64;

const editors = needs.editors.file;
const resolveFile = (name: string): string => fileURLToPath(new URL(`../../api/applications/${name}`, import.meta.url));
const printProgress = (text: string): void => void process.stderr.write(`${text}\n`);

type RunningApp = {
  readonly port: number;
  readonly requests: readonly LoadRequest[];
  /** Transfers data through the WebSocket and compares it. Resolves with a description. */
  socket(side: Target, direct: Target): Promise<string>;
  stop(): Promise<void>;
};

const randomText = (size: number): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)))
    .toString("hex")
    .repeat(size / 120_000 + 1)
    .slice(0, size);

const requireSame = (name: string, actual: Uint8Array | string, expected: Uint8Array | string): void => {
  if (Buffer.compare(Buffer.from(actual as string), Buffer.from(expected as string)) !== 0)
    throw new Error(`${name} is different through the server`);
};

/** Starts a third-party program and waits until it responds. Returns a function that stops it. */
const runProgram = async (command: string[], port: number, path: string, env: Record<string, string>, cwd: string) => {
  const log = Bun.file(join(cwd, "program.log"));
  const child = Bun.spawn(command, {
    cwd,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdin: "ignore",
    stdout: log,
    stderr: log,
  });
  await until(
    async () => {
      if (child.exitCode !== null) throw new Error(await log.text());
      return (await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined))?.ok === true;
    },
    { timeoutMs: 60_000 },
  );
  return async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
  };
};

/** Returns the page at a path and the app's files that it references. */
const listPageFiles = async (port: number, path: string, limit = 24): Promise<LoadRequest[]> => {
  const page = await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  const base = new URL(path, "http://app");
  const links = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(
    ([, link = ""]) => new URL(link.replaceAll("&amp;", "&"), base),
  );
  const paths = links.filter(({ host }) => host === "app").map(({ pathname, search }) => pathname + search);
  return [...new Set([path, ...paths])].slice(0, limit).map((filePath) => ({ path: filePath }));
};

const startEcho = async (command: string[]): Promise<RunningApp> => {
  const app = await startListening(command);
  const body = Buffer.from(randomText(70_001));
  return {
    port: app.port,
    requests: [
      ...[0, 1000, 65_536, 300_000].map((length) => ({ path: `/length/${length}` })),
      { path: "/chunked/100000" },
      { path: "/echo?a=1&&b=%20+x&", method: "POST", body, type: "text/x-own" },
    ],
    async socket(side) {
      const seconds = await echoBytes(side, "/socket", TOTAL_BYTES, 5 * MEGABYTE);
      return `100 MB up and down in ${seconds.toFixed(1)} s`;
    },
    stop: () => app[Symbol.asyncDispose](),
  };
};

type Home = { readonly home: string };

const APPS: Readonly<Record<string, (world: Home) => Promise<RunningApp>>> = {
  "Node echo": () => startEcho([needs.node.file, resolveFile("echo-node.mjs")]),
  "Go echo": async ({ home }) => {
    const program = join(home, "echo");
    const build = Bun.spawnSync([needs.go.file, "build", "-trimpath", "-o", program, resolveFile("echo.go")], {
      stderr: "inherit",
    });
    if (build.exitCode !== 0) throw new Error("Go cannot build the echo program");
    return await startEcho([program]);
  },
  Vite: async ({ home }) => {
    const folder = join(home, "vite");
    mkdirSync(folder, { recursive: true });
    const big = join(folder, "big.js");
    writeFileSync(join(folder, "index.html"), '<!doctype html><script type="module" src="/main.js"></script>');
    writeFileSync(
      join(folder, "main.js"),
      'import { big } from "./big.js";\nimport "./look.css";\ndocument.title = big;\n',
    );
    writeFileSync(join(folder, "look.css"), "body { color: teal }\n");
    writeFileSync(join(folder, "hot.js"), 'import "./hot.css";\n');
    writeFileSync(join(folder, "hot.css"), "body { order: 0 }\n");
    writeFileSync(big, `export const big = "${randomText(300_000)}";\n`);
    const port = await findFreePort();
    const program = join(editors, "vite/node_modules/vite/bin/vite.js");
    const stop = await runProgram(
      [needs.node.file, program, "--port", String(port), "--strictPort", "--host", "127.0.0.1"],
      port,
      "/",
      { HOME: home },
      folder,
    );
    return {
      port,
      requests: ["/", "/main.js", "/big.js", "/look.css", "/@vite/client"].map((path) => ({ path })),
      async socket(side, direct) {
        const client = await (await fetch(`${direct.origin}/@vite/client`, { headers: direct.headers })).text();
        const token = /wsToken = "([^"]+)"/.exec(client)?.[1] ?? "";
        const socket = await openSocket(side, `/?token=${token}`, {
          protocols: ["vite-hmr"],
          more: { origin: `http://${side.headers.host}` },
        });
        let changes = 0;
        socket.onmessage = ({ data }) => {
          if (String(data).includes('"/hot.css"')) changes += 1;
        };
        // A separate module graph, so that the files that the load requests remain unchanged.
        for (const path of ["/hot.js", "/hot.css?import"])
          await fetch(`${direct.origin}${path}`, { headers: direct.headers });
        let [writes, wroteAt] = [0, 0];
        // Vite's watcher drops a change within 50 ms of the previous one. Then the file is written again.
        const isUpdated = (count: number): boolean => {
          if (changes >= count) return true;
          if (performance.now() - wroteAt < 200) return false;
          writeFileSync(join(folder, "hot.css"), `body { order: ${++writes} }\n`);
          wroteAt = performance.now();
          return false;
        };
        for (let count = 1; count <= 20; count += 1) await until(() => isUpdated(count), { timeoutMs: 20_000 });
        socket.close();
        return `${changes} changes of a file`;
      },
      stop,
    };
  },
  "code-server": async ({ home }) => {
    const folder = join(home, "code");
    mkdirSync(folder, { recursive: true });
    const version = /ready-([\d.]+)/.exec([...new Bun.Glob("ready-*").scanSync(editors)][0] ?? "")?.[1];
    const archive = [...new Bun.Glob(`code-server/v${version}/*.tar.gz`).scanSync(editors)][0] ?? "";
    const lib = join(home, "code-server");
    mkdirSync(lib);
    if (Bun.spawnSync(["tar", "-xzf", join(editors, archive), "-C", lib, "--strip-components=1"]).exitCode !== 0)
      throw new Error("code-server cannot be unpacked");
    const [product = ""] = [...new Bun.Glob("**/lib/vscode/product.json").scanSync(lib)];
    const { commit, quality } = JSON.parse(readFileSync(join(lib, product), "utf8")) as Record<string, string>;
    const port = await findFreePort();
    const command = [
      join(lib, "bin/code-server"),
      "--auth",
      "none",
      "--bind-addr",
      `127.0.0.1:${port}`,
      "--disable-telemetry",
      "--disable-update-check",
      folder,
    ];
    const stop = await runProgram(command, port, "/healthz", { HOME: home }, folder);
    const scripts = `/${quality}-${commit}/static/out/vs/code/browser/workbench`;
    return {
      port,
      requests: [
        ...(await listPageFiles(port, "/")),
        { path: `${scripts}/workbench.js` },
        { path: `${scripts}/workbench.css` },
      ],
      async socket(side) {
        using files = await CodeServerFiles.open(side, quality ?? "", commit ?? "");
        const startedAt = performance.now();
        const bytes = Buffer.from(randomText(FILE_BYTES));
        for (let n = 0; n < TOTAL_BYTES / FILE_BYTES; n += 1) {
          const path = join(folder, `file-${n}`);
          await files.write(path, bytes);
          requireSame("the file on the disk", readFileSync(path), bytes);
          requireSame("the file", await files.read(path), bytes);
        }
        return `100 MB written and read in files of 20 MB in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
      },
      stop,
    };
  },
  JupyterLab: async ({ home }) => {
    const folder = join(home, "jupyter");
    mkdirSync(folder, { recursive: true });
    const port = await findFreePort();
    const env = { HOME: home, PATH: `${findPythonPrograms()}:${process.env.PATH}` };
    const options = [
      "--no-browser",
      "--allow-root",
      "--ip=127.0.0.1",
      `--port=${port}`,
      "--IdentityProvider.token=load",
      "--ServerApp.allow_remote_access=True",
    ];
    // Turns off Jupyter's own limits; the default is 1 MB/s per cell.
    const limits = ["--ZMQChannelsWebsocketConnection.iopub_data_rate_limit=1e12", `--ServerApp.root_dir=${folder}`];
    const stop = await runProgram(
      [join(findPythonPrograms(), "jupyter-lab"), ...options, ...limits],
      port,
      "/api",
      env,
      folder,
    );
    const requests = await listPageFiles(port, "/lab?token=load");
    return {
      port,
      requests: [{ path: "/api" }, ...requests.filter(({ path }) => path.startsWith("/static/"))],
      async socket(side) {
        using kernel = await JupyterKernel.open(side);
        const startedAt = performance.now();
        const text = randomText(CELL_BYTES);
        const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
        await kernel.run("import hashlib\nfrom IPython.display import display, HTML");
        for (let n = 0; n < TOTAL_BYTES / CELL_BYTES; n += 1) {
          requireSame(
            "what the cell holds",
            (await kernel.run(`x = "${text}"\nprint(hashlib.sha256(x.encode()).hexdigest())`)).trim(),
            digest,
          );
          requireSame("what the cell shows", await kernel.run("display(HTML(x))"), text);
        }
        return `20 cells of 5 MB run and shown in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
      },
      stop,
    };
  },
  Streamlit: async ({ home }) => {
    const folder = join(home, "streamlit");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "app.py"), SCRIPT);
    const port = await findFreePort();
    const command = [
      join(findPythonPrograms(), "streamlit"),
      "run",
      "app.py",
      "--server.headless=true",
      "--server.address=127.0.0.1",
      `--server.port=${port}`,
      "--browser.gatherUsageStats=false",
    ];
    const stop = await runProgram(command, port, "/_stcore/health", { HOME: home }, folder);
    return {
      port,
      requests: await listPageFiles(port, "/"),
      async socket(side, direct) {
        using directSession = await StreamlitSession.open(direct);
        const expectedTable = decodeTable(await directSession.run(CELL_BYTES));
        const startedAt = performance.now();
        let bytes = 0;
        for (; bytes < TOTAL_BYTES; bytes += expectedTable.length) {
          using session = await StreamlitSession.open(side);
          requireSame("the table", decodeTable(await session.run(CELL_BYTES)), expectedTable);
        }
        return `${(bytes / MEGABYTE).toFixed(0)} MB of tables of 8 MB in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
      },
      stop,
    };
  },
};

/** Returns the table's values. The data around them contains the session, which differs. */
const decodeTable = (message: Buffer): Buffer =>
  message.subarray(message.indexOf("ARROW1") === -1 ? 4096 : message.indexOf("ARROW1"), message.length - 4096);

/** Returns the folder of Python programs with JupyterLab and Streamlit. Creates it at the first call. */
const findPythonPrograms = (): string => {
  const venv = join(editors, "venv");
  const bin = join(venv, "bin");
  if (Bun.file(join(bin, "streamlit")).size > 0) return bin;
  const commands = [
    [needs.python3.file, "-m", "venv", venv],
    [
      join(bin, "pip"),
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "--no-index",
      "--find-links",
      join(editors, "python"),
      "jupyterlab",
      "streamlit",
    ],
  ];
  for (const command of commands)
    if (Bun.spawnSync(command, { stderr: "inherit" }).exitCode !== 0) throw new Error(`${command[0]} failed`);
  return bin;
};

const main = async (): Promise<boolean> => {
  await using world = await openLoadWorld();
  const lines: string[] = [];
  let isPassed = true;
  for (const [name, start] of Object.entries(APPS)) {
    if (options.only && !options.only.includes(name)) continue;
    printProgress(`${name} ...`);
    const app = await start(world);
    try {
      const sides = world.sides(app.port);
      const connections = Number(options.connections);
      const warmUp = await loadApp(sides, app.requests, { connections, ms: 2000 });
      using memory = new MemoryWatch(world.pids);
      const [load, socket] = await Promise.all([
        loadApp(sides, app.requests, { connections, ms: Number(options.seconds) * 1000 }),
        app.socket(sides.through, sides.direct).catch((error: unknown) => {
          isPassed = false;
          return `FAILED: ${error}`;
        }),
      ]);
      const different = [...warmUp.different, ...load.different];
      for (const problem of different.slice(0, 5)) printProgress(`${name}: ${problem}`);
      for (const path of load.unstablePaths) printProgress(`${name}: ${path} is different each time and was left out`);
      const [server, daemon] = memory
        .read()
        .map(({ first, last, peak }) => `${first.toFixed(0)} / ${last.toFixed(0)} / ${peak.toFixed(0)}`);
      const hasGrown = memory.read().some(({ first, last }) => last - first > MAX_GROWTH_MIB);
      if (different.length > 0 || hasGrown) isPassed = false;
      const row = [
        name,
        load.answers,
        (load.answers / load.seconds).toFixed(0),
        (load.bytes / MEGABYTE / load.seconds).toFixed(0),
        different.length,
        socket,
        server,
        daemon,
      ];
      lines.push(`| ${row.join(" | ")} |`);
      printProgress(lines.at(-1) ?? "");
    } finally {
      await app.stop();
    }
  }
  const header = [
    "app",
    "answers",
    "per second",
    "MB/s",
    "different",
    "through its WebSocket",
    "server MiB",
    "daemon MiB",
  ];
  process.stdout.write(`| ${header.join(" | ")} |\n|${"---|".repeat(header.length)}\n${lines.join("\n")}\n`);
  return isPassed;
};

process.exitCode = (await main()) ? 0 : 1;
