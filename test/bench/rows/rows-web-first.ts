// The row about new users: `npm start` in a fresh clone, and then only the browser, until a chat answers in a running workspace.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startOllama } from "#test/api/administration/model-servers.ts";
import { findFreePort } from "#test/crash/server.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { type Bench, productFigure, type Row } from "../row.ts";
import { browse } from "./browse.ts";

const ROOT = join(import.meta.dir, "..", "..", "..");
let cloneCount = 0;

/** Returns the setup link that a server without users prints. */
const readSetupLink = async (output: ReadableStream<Uint8Array>): Promise<string> => {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of output) {
    text += decoder.decode(bytes, { stream: true });
    const [link] = /http\S+\/setup\?token=\S+/.exec(text) ?? [];
    if (link && text.includes("Data directory:")) return link;
  }
  throw new Error(`npm start ended before it listened: ${text}`);
};

const measure = async ({ setup }: Bench) => {
  const dir = join(setup.dir, `first-${++cloneCount}`);
  const clone = join(dir, "clone");
  mkdirSync(dir);
  await Bun.$`git clone --quiet --no-hardlinks ${ROOT} ${clone}`;
  await using model = await TalkingModel.start();
  using ollama = startOllama({
    "POST /v1/chat/completions": async (request) =>
      fetch(`${model.server.url}/v1/chat/completions`, {
        method: "POST",
        body: await request.text(),
        headers: { "content-type": "application/json" },
      }),
  });
  const startedAt = performance.now();
  await using child = Bun.spawn(["npm", "start", "--", "--address", `127.0.0.1:${await findFreePort()}`], {
    cwd: clone,
    env: {
      ...process.env,
      // The caches are new, so that nothing was downloaded before.
      BUN_INSTALL_CACHE_DIR: join(dir, "bun-cache"),
      npm_config_cache: join(dir, "npm-cache"),
      SLIPWAY_DATA_DIR: join(dir, "data"),
      SLIPWAY_LOCAL_MODEL_SERVERS: `http://127.0.0.1:${ollama.port}`,
      SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
      SLIPWAY_CHAT_TITLES: "false",
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const setupLink = await readSetupLink(child.stdout);
  const start_s = (performance.now() - startedAt) / 1000;
  const figures = await browse({ url: new URL(setupLink).origin, adminToken: "" }, "first", { setup: setupLink });
  child.kill("SIGTERM");
  await child.exited;
  return { ...figures, start_s, whole_s: start_s + (figures.screen_s ?? 0) };
};

export const firstRow: Row = {
  name: "web-first",
  title:
    "New user: npm start in a fresh clone, including package installation, then only the browser until a chat answers in a running workspace",
  sides: ["product"],
  maxRounds: 1,
  measure,
  figures: {
    start_s: "npm start to the setup link s",
    screen_s: "setup link to an answer s",
    whole_s: "total s",
    presses: "presses",
  },
  verdicts: [
    {
      what: "npm start to an answering chat",
      target: "<= 60 s",
      bound: 60,
      unit: "s",
      better: "lower",
      value: productFigure("whole_s"),
    },
  ],
};
