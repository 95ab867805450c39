// `SLIPWAY_TEST_EDITORS=FOLDER bun test/bench/apps/run.ts [--seconds 20] [--connections 64] [--only NAME]`: real apps at their own hosts on
// a server with default settings, under load, with every response compared with the app's own, and with 100 MB through their WebSockets in
// both directions at the same time. Prints a table; exits with 1 if a response or byte differed, or memory grew.
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

const MB = 1_000_000;
const TOTAL = 100 * MB;
/** A notebook cell, and an editor's file. */
const [CELL, FILE] = [5 * MB, 20 * MB];
/** Memory growth between the first and last third of a load that counts as noise. */
const FLAT_MIB = 64;

const editors = needs.editors.file;
const resolveFile = (name: string): string => fileURLToPath(new URL(`../../api/applications/${name}`, import.meta.url));
const note = (text: string): void => void process.stderr.write(`${text}\n`);

type RunningApp = {
  readonly port: number;
  readonly asks: readonly LoadRequest[];
  /** Transfers data through the WebSocket and compares it; resolves with a description. */
  socket(side: Target, direct: Target): Promise<string>;
  stop(): Promise<void>;
};

const noise = (size: number): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)))
    .toString("hex")
    .repeat(size / 120_000 + 1)
    .slice(0, size);

const requireSame = (what: string, one: Uint8Array | string, other: Uint8Array | string): void => {
  if (Buffer.compare(Buffer.from(one as string), Buffer.from(other as string)) !== 0)
    throw new Error(`${what} is different through the server`);
};

/** Runs a third-party program until it responds. */
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
    { patience: 60_000 },
  );
  return async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
  };
};

/** Returns the files of the app that the page at a path references, and some of the files that these reference. */
const listPageFiles = async (port: number, path: string, limit = 24): Promise<LoadRequest[]> => {
  const page = await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  const base = new URL(path, "http://app");
  const found = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(
    ([, link = ""]) => new URL(link.replaceAll("&amp;", "&"), base),
  );
  const own = found.filter(({ host }) => host === "app").map(({ pathname, search }) => pathname + search);
  return [...new Set([path, ...own])].slice(0, limit).map((one) => ({ path: one }));
};

const startEcho = async (command: string[]): Promise<RunningApp> => {
  const app = await startListening(command);
  const body = Buffer.from(noise(70_001));
  return {
    port: app.port,
    asks: [
      ...[0, 1000, 65_536, 300_000].map((length) => ({ path: `/length/${length}` })),
      { path: "/chunked/100000" },
      { path: "/echo?a=1&&b=%20+x&", method: "POST", body, type: "text/x-own" },
    ],
    async socket(side) {
      const seconds = await echoBytes(side, "/socket", TOTAL, 5 * MB);
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
    const built = Bun.spawnSync([needs.go.file, "build", "-trimpath", "-o", program, resolveFile("echo.go")], {
      stderr: "inherit",
    });
    if (built.exitCode !== 0) throw new Error("Go does not build the echo");
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
    writeFileSync(big, `export const big = "${noise(300_000)}";\n`);
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
      asks: ["/", "/main.js", "/big.js", "/look.css", "/@vite/client"].map((path) => ({ path })),
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
        // A separate module graph: the files that the load requests are unchanged.
        for (const path of ["/hot.js", "/hot.css?import"])
          await fetch(`${direct.origin}${path}`, { headers: direct.headers });
        let [writes, wroteAt] = [0, 0];
        // Vite's watcher drops a change within 50 ms of the previous one, so a file whose change was missed is written again.
        const hasUpdated = (n: number): boolean => {
          if (changes >= n) return true;
          if (performance.now() - wroteAt < 200) return false;
          writeFileSync(join(folder, "hot.css"), `body { order: ${++writes} }\n`);
          wroteAt = performance.now();
          return false;
        };
        for (let n = 1; n <= 20; n += 1) await until(() => hasUpdated(n), { patience: 20_000 });
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
      asks: [
        ...(await listPageFiles(port, "/")),
        { path: `${scripts}/workbench.js` },
        { path: `${scripts}/workbench.css` },
      ],
      async socket(side) {
        using files = await CodeServerFiles.open(side, quality ?? "", commit ?? "");
        const started = performance.now();
        const bytes = Buffer.from(noise(FILE));
        for (let n = 0; n < TOTAL / FILE; n += 1) {
          const path = join(folder, `file-${n}`);
          await files.write(path, bytes);
          requireSame("the file on the disk", readFileSync(path), bytes);
          requireSame("the file", await files.read(path), bytes);
        }
        return `100 MB written and read in files of 20 MB in ${((performance.now() - started) / 1000).toFixed(1)} s`;
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
    // Disables its own limits; the default is 1 MB/s per cell.
    const limits = ["--ZMQChannelsWebsocketConnection.iopub_data_rate_limit=1e12", `--ServerApp.root_dir=${folder}`];
    const stop = await runProgram(
      [join(findPythonPrograms(), "jupyter-lab"), ...options, ...limits],
      port,
      "/api",
      env,
      folder,
    );
    const asks = await listPageFiles(port, "/lab?token=load");
    return {
      port,
      asks: [{ path: "/api" }, ...asks.filter(({ path }) => path.startsWith("/static/"))],
      async socket(side) {
        using kernel = await JupyterKernel.open(side);
        const started = performance.now();
        const text = noise(CELL);
        const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
        await kernel.run("import hashlib\nfrom IPython.display import display, HTML");
        for (let n = 0; n < TOTAL / CELL; n += 1) {
          requireSame(
            "what the cell holds",
            (await kernel.run(`x = "${text}"\nprint(hashlib.sha256(x.encode()).hexdigest())`)).trim(),
            digest,
          );
          requireSame("what the cell shows", await kernel.run("display(HTML(x))"), text);
        }
        return `20 cells of 5 MB run and shown in ${((performance.now() - started) / 1000).toFixed(1)} s`;
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
      asks: await listPageFiles(port, "/"),
      async socket(side, direct) {
        using own = await StreamlitSession.open(direct);
        const wanted = decodeTable(await own.run(CELL));
        const started = performance.now();
        let bytes = 0;
        for (; bytes < TOTAL; bytes += wanted.length) {
          using session = await StreamlitSession.open(side);
          requireSame("the table", decodeTable(await session.run(CELL)), wanted);
        }
        return `${(bytes / MB).toFixed(0)} MB of tables of 8 MB in ${((performance.now() - started) / 1000).toFixed(1)} s`;
      },
      stop,
    };
  },
};

/** Returns the table's values: the surrounding data contains the session. */
const decodeTable = (message: Buffer): Buffer =>
  message.subarray(message.indexOf("ARROW1") === -1 ? 4096 : message.indexOf("ARROW1"), message.length - 4096);

/** Returns the folder of Python programs with JupyterLab and Streamlit; created once. */
const findPythonPrograms = (): string => {
  const created = join(editors, "venv");
  const bin = join(created, "bin");
  if (Bun.file(join(bin, "streamlit")).size > 0) return bin;
  const commands = [
    [needs.python3.file, "-m", "venv", created],
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
  let isWell = true;
  for (const [name, start] of Object.entries(APPS)) {
    if (options.only && !options.only.includes(name)) continue;
    note(`${name} ...`);
    const app = await start(world);
    try {
      const sides = world.sides(app.port);
      const connections = Number(options.connections);
      const warm = await loadApp(sides, app.asks, { connections, ms: 2000 });
      using memory = new MemoryWatch(world.pids);
      const [load, socket] = await Promise.all([
        loadApp(sides, app.asks, { connections, ms: Number(options.seconds) * 1000 }),
        app.socket(sides.through, sides.direct).catch((error: unknown) => {
          isWell = false;
          return `NO: ${error}`;
        }),
      ]);
      const different = [...warm.different, ...load.different];
      for (const one of different.slice(0, 5)) note(`${name}: ${one}`);
      for (const path of load.unsteady) note(`${name}: ${path} is different each time and was left out`);
      const [server, daemon] = memory
        .read()
        .map(({ first, last, peak }) => `${first.toFixed(0)} / ${last.toFixed(0)} / ${peak.toFixed(0)}`);
      const grew = memory.read().some(({ first, last }) => last - first > FLAT_MIB);
      if (different.length > 0 || grew) isWell = false;
      const row = [
        name,
        load.answers,
        (load.answers / load.seconds).toFixed(0),
        (load.bytes / MB / load.seconds).toFixed(0),
        different.length,
        socket,
        server,
        daemon,
      ];
      lines.push(`| ${row.join(" | ")} |`);
      note(lines.at(-1) ?? "");
    } finally {
      await app.stop();
    }
  }
  const head = [
    "app",
    "answers",
    "per second",
    "MB/s",
    "different",
    "through its WebSocket",
    "server MiB",
    "daemon MiB",
  ];
  process.stdout.write(`| ${head.join(" | ")} |\n|${"---|".repeat(head.length)}\n${lines.join("\n")}\n`);
  return isWell;
};

process.exitCode = (await main()) ? 0 : 1;
