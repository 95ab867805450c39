// A real server for tests: a real store in a temp directory, real sockets on a free port. Use with `await using`. With SLIPWAY_TEST_BINARY,
// the same tests run against the compiled binary.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { type Config, type LoadedConfig, loadConfig } from "#base/config.ts";
import type { Shards } from "#base/shards.ts";
import type { MemoryShare } from "#base/system/memory-share.ts";
import { deriveNodeToken, makeForwardedAddressTaker } from "#src/cluster/forwarded-header.ts";
import type { Membership } from "#src/cluster/membership.ts";
import type { Context } from "#src/context/context.ts";
import { openContext } from "#src/context/open.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import { startServer } from "#src/server.ts";
import { startActiveNodes, usesActiveNodes } from "./cluster/active-nodes.ts";
import { combineNodes } from "./cluster/all-nodes.ts";
import { copyAsJson, takeNonJsonValues } from "./cluster/json-copy.ts";
import { startProxy, startSpares, usesStandbyNodes } from "./cluster/nodes.ts";
import { openServersStore, removeServersDatabase, serversDatabase, usesPostgres } from "./postgres-server.ts";
import { CHEAP_HASH, fillMigrated, fillPrepared } from "./prepared.ts";
import { findCompiledProgram } from "./program.ts";
import { noteFolder } from "./run/ledger.ts";

export type TestServer = AsyncDisposable & {
  readonly url: URL;
  readonly directory: string;
  /**
   * Undefined when the compiled binary is under test, and after disposal. With several active nodes, it is the first node's context, with
   * the members of all nodes combined.
   */
  readonly context: Context | undefined;
  /** The context of each active node. */
  readonly contexts: readonly Context[];
};

export const ADMIN = { email: "admin@example.com", username: "admin", password: "correct-horse-battery" } as const;

export type TestServerOptions = {
  env?: Record<string, string>;
  clock?: Clock;
  directory?: string;
  models?: LanguageModels;
  /** The memory for model calls and large results of tools. */
  callMemory?: MemoryShare;
  /** The shards of this server, as one of several nodes. */
  shards?: Shards;
  /** The server's environment variables in addition to settings; the binary always has PATH and HOME. */
  environment?: Record<string, string>;
  /** Uses the real password hashing cost, for tests about it. */
  usesRealHashCost?: boolean;
  /** For tests about responses that do not match their schema; otherwise a mismatch fails the test. */
  allowMismatches?: boolean;
};

/** Creates an empty temp directory that is removed when disposed. */
export const tempDirectory = (): { path: string } & Disposable => {
  const path = mkdtempSync(join(tmpdir(), "slipway-test-"));
  noteFolder(path);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

const toEnvironment = (directory: string, options: TestServerOptions): Record<string, string> => ({
  SLIPWAY_DATA_DIR: directory,
  SLIPWAY_ADDRESS: "127.0.0.1:0",
  SLIPWAY_ADMIN_EMAIL: ADMIN.email,
  SLIPWAY_ADMIN_USERNAME: ADMIN.username,
  SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
  // The machine may have an engine; only tests that ask for it use it.
  SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
  // Tests count the calls to models, so no titles are requested.
  SLIPWAY_CHAT_TITLES: "false",
  ...options.env,
});

/** Returns settings as the environment would provide them. */
export const testConfig = (directory: string, options: TestServerOptions = {}): Config =>
  loadTestConfig(directory, options).config;

const loadTestConfig = (directory: string, options: TestServerOptions): LoadedConfig =>
  loadConfig({
    argv: [],
    env: toEnvironment(directory, options),
    readFile: () => {
      throw new Error("no settings file in tests");
    },
  });

/** Starts a server with the first user ADMIN. */
export const startTestServer = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const temp = options.directory === undefined ? tempDirectory() : undefined;
  const directory = options.directory ?? (temp as { path: string }).path;
  const binaryPath = process.env.SLIPWAY_TEST_BINARY;
  if (!usesPostgres) {
    if (isUsual(options)) await fillPrepared(directory, testConfig, ADMIN.password);
    else if (temp) fillMigrated(directory);
  }
  const { url, ...started } =
    binaryPath && !options.clock && !options.models && !options.callMemory
      ? await startBinary(binaryPath, directory, options)
      : await startInProcess(directory, options);
  // All files of a run share a process, and a server at the top level of a file stays reachable: it must release what it consisted of.
  let running: Running | undefined = started;
  return {
    url,
    directory,
    get context() {
      return running?.context;
    },
    get contexts() {
      return running?.contexts ?? [];
    },
    async [Symbol.asyncDispose]() {
      const ending = running;
      running = undefined;
      await ending?.stop();
      if (temp) await removeServersDatabase(directory);
      temp?.[Symbol.dispose]();
    },
  };
};

type Running = Pick<TestServer, "context" | "contexts"> & { stop(): Promise<void> };

/** Returns true if the server's first start creates the same data as the first start of any other. */
const isUsual = ({ clock, directory, env = {} }: TestServerOptions): boolean =>
  clock === undefined && directory === undefined && !Object.keys(env).some((name) => name.startsWith("SLIPWAY_ADMIN_"));

const startInProcess = async (directory: string, options: TestServerOptions) => {
  if (usesPostgres && usesActiveNodes) return startThreeNodes(directory, options);
  const proxy = usesPostgres && usesStandbyNodes ? startProxy() : undefined;
  const env = { ...(proxy ? { SLIPWAY_ACCESS_URL: proxy.url.href } : {}), ...options.env };
  const { config, sources } = loadTestConfig(directory, { ...options, env });
  const { clock, models, callMemory, shards, environment } = options;
  const setup = { config, password: ADMIN.password, isUsual: isUsual(options) };
  const { database = "", ...opened } = usesPostgres ? await openServersStore(directory, setup) : {};
  const membership =
    proxy && ({ makeForwardedAddressTaker: (key) => makeForwardedAddressTaker(deriveNodeToken(key)) } as Membership);
  const program = findCompiledProgram();
  const daemon = program ? [program, "agent"] : undefined;
  const tests = { copyMessages: copyAsJson, daemon, hashCost: options.usesRealHashCost ? undefined : CHEAP_HASH };
  const context = await openContext({
    config,
    sources,
    clock,
    models,
    callMemory,
    shards,
    environment,
    ...tests,
    ...opened,
    membership,
  });
  const server = await startServer(context, { checkAnswers: true });
  const spares = proxy && startSpares(context, server.url, proxy, { config, clock, database });
  return {
    url: proxy?.url ?? server.url,
    context,
    contexts: [context],
    async stop() {
      await spares?.[Symbol.asyncDispose]();
      await server.stop("the test is over");
      await context[Symbol.asyncDispose]();
      const [nonJson] = takeNonJsonValues();
      if (nonJson) throw new Error(`a message to an actor, or its reply, is not JSON: ${nonJson}`);
      const [firstMismatch] = context.requests.mismatches.kept;
      if (firstMismatch && !options.allowMismatches)
        throw new Error(
          `${context.requests.mismatches.count} responses did not match their schemas: ${JSON.stringify(firstMismatch)}`,
        );
    },
  };
};

/** Starts three active nodes. */
const startThreeNodes = async (directory: string, options: TestServerOptions) => {
  const { clock, models, environment } = options;
  const loadNodeConfig = (access: URL): LoadedConfig =>
    loadTestConfig(directory, { ...options, env: { SLIPWAY_ACCESS_URL: access.href, ...options.env } });
  const { sources } = loadTestConfig(directory, options);
  const setup = { config: testConfig(directory, options), password: ADMIN.password, isUsual: isUsual(options) };
  const program = findCompiledProgram();
  const daemon = program ? [program, "agent"] : undefined;
  const hashCost = options.usesRealHashCost ? undefined : CHEAP_HASH;
  const shared = { sources, clock, models, environment, copyMessages: copyAsJson, daemon, hashCost };
  const database = await serversDatabase(directory, setup);
  const { url, contexts, stop } = await startActiveNodes(database, (access) => loadNodeConfig(access).config, shared);
  return {
    url,
    context: combineNodes(contexts as [Context, ...Context[]]),
    contexts,
    async stop() {
      await stop();
      const [nonJson] = takeNonJsonValues();
      if (nonJson) throw new Error(`a message to an actor, or its reply, is not JSON: ${nonJson}`);
      const firstMismatch = contexts.flatMap(({ requests }) => requests.mismatches.kept)[0];
      if (firstMismatch && !options.allowMismatches)
        throw new Error(`responses did not match their schemas: ${JSON.stringify(firstMismatch)}`);
    },
  };
};

const startBinary = async (binary: string, directory: string, options: TestServerOptions) => {
  const child = Bun.spawn([binary, "serve"], {
    env: { PATH: process.env.PATH ?? "", HOME: directory, ...toEnvironment(directory, options) },
    stdout: "pipe",
    stderr: "ignore",
  });
  const url = await readAnnouncedUrl(child.stdout);
  return {
    url,
    context: undefined,
    contexts: [],
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
};

/** Returns the URL in the line that `serve` prints once it listens. */
export const readAnnouncedUrl = async (output: ReadableStream<Uint8Array>): Promise<URL> => {
  const reader = output
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    text += value ?? "";
    const match = / is listening on (\S+)\n/.exec(text);
    if (match) {
      void drain(reader);
      return new URL(match[1] as string);
    }
    if (done) throw new Error(`the server ended before it listened: ${text}`);
  }
};

const drain = async (reader: ReadableStreamDefaultReader<string>): Promise<void> => {
  while (!(await reader.read()).done);
};
