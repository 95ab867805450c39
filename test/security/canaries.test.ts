// Canaries: a unique text is planted in everything that is secret. Then every caller calls every operation, correctly and incorrectly, and
// no response, stream or log line may contain a canary unless the specification returns it (RELIABILITY check 32).
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { configureLogging, log, resetLogging } from "#base/log.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { Client } from "#src/client.ts";
import { callAs, getRow } from "#test/api/edge/matrix-call.ts";
import { CALLERS, type CallerName, type MatrixWorld, openMatrixWorld } from "#test/api/edge/matrix-world.ts";
import type { Operation } from "#test/fuzz/operations.ts";
import { describeInProcess, testInProcess } from "#test/support/in-process.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";

const canary = (name: string): string => `canary-${name}-8fb1c2`;

/** Names of JSON fields that contain a secret, in any route. */
const SECRET_FIELD = /password|secret|api_key|private_key|token$/;
// The name of the header that carries a key is not a secret.
const NOT_SECRET = /^(token_name|max_token_lifetime|api_key_header)$/;

/** Disclosures that the specification demands: secret, caller and operation. */
const ALLOWED_DISCLOSURES: Record<string, RegExp> = {
  // An agent's environment is part of the agent (specification, Workspace agent), and of the plan of a template's version.
  "agent environment":
    /^(ada|admin|colleague) (GET|POST|PUT) \/api\/v2\/(workspace|users\/|organizations\/|templateversions\/)/,
  // An agent receives its owner's complete key pair.
  "git key": /^agent GET \/api\/v2\/workspaceagents\/me\/gitsshkey$/,
};

const MANIFEST: Manifest = {
  provisioner: "echo",
  variables: [{ name: "region", default: canary("variable"), sensitive: true }],
  resources: [
    {
      name: "main",
      metadata: [{ key: "password", value: canary("metadata"), sensitive: true }],
      agents: [{ name: "dev", os: "linux", arch: "amd64", env: { SECRET: canary("env") } }],
    },
  ],
};

describeInProcess("canaries", () => {
  let world: MatrixWorld;
  const secrets = new Map<string, string>();
  const responses: { request: string; text: string }[] = [];
  const lines: string[] = [];

  beforeAll(async () => {
    configureLogging({ level: "trace", format: "json", write: (line) => void lines.push(line) });
    world = await openMatrixWorld({ manifest: MANIFEST, client_secret: canary("client-secret") });
    await plantSecrets();
    await recordSocketStates();
    for (const operation of sortReadsFirst(world.operations)) {
      for (const caller of CALLERS) await callInAllWays(operation, caller);
    }
    // These are thousands of requests, and the machine may be busy with other tests.
  }, scaleTimeout(300_000));
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
    resetLogging();
  });

  /** Creates everything that the server must keep secret. */
  const plantSecrets = async (): Promise<void> => {
    secrets.set("first user's password", ADMIN.password);
    for (const name of ["variable", "metadata", "client-secret", "field"]) secrets.set(name, canary(name));
    secrets.set("agent environment", canary("env"));
    const ada = new Client(world.server.url, world.tokens.ada);
    await ada.patch(`/api/v2/users/me/secrets/${world.things.secret}`, { value: canary("kept"), env_name: "KEPT" });
    secrets.set("secret of ada", canary("kept"));
    for (const [caller, token] of Object.entries(world.tokens)) {
      // Half of a token is also secret; its ID is not.
      if (token) secrets.set(`token of ${caller}`, token.length === 36 ? token : (token.split("-")[1] as string));
    }
    const agent = { ...world.tokens }.agent;
    const pair = await fetch(new URL("/api/v2/workspaceagents/me/gitsshkey", world.server.url), {
      headers: { "Service-Session-Token": agent as string },
    });
    const { private_key } = (await pair.json()) as { private_key: string };
    secrets.set("git key", private_key.split("\n")[3] as string);
    using database = new Database(join(world.server.directory, "slipway.db"), { readonly: true });
    const tables = database.query("select name from sqlite_schema where type = 'table'").all() as { name: string }[];
    for (const { name: table } of tables) {
      const columns = database.query(`select name from pragma_table_info('${table}')`).all() as { name: string }[];
      for (const { name } of columns.filter((column) => /(password|secret|token)_hash$/.test(column.name))) {
        for (const [value] of database.query(`select distinct "${name}" from "${table}"`).values()) {
          if (value) secrets.set(`${table}.${name} ${secrets.size}`, String(value));
        }
      }
    }
  };

  /** Reads the first messages of sockets, which contain the full state. */
  const recordSocketStates = async (): Promise<void> => {
    const { workspace, chat } = world.things;
    const paths = [`workspaces/${workspace}/watch-ws`, `chats/${chat}/stream`];
    for (const path of paths) {
      for (const caller of ["ada", "admin"] as const) {
        using socket = await new Client(world.server.url, world.tokens[caller]).socket(`/api/v2/${path}`);
        responses.push({ request: `${caller} GET /api/v2/${path}`, text: JSON.stringify(await socket.json()) });
      }
    }
  };

  const callInAllWays = async (operation: Operation, caller: CallerName): Promise<void> => {
    const row = getRow(operation.name);
    const things = row.fresh ? { ...world.things, ...(await world.makers[row.fresh](caller)) } : world.things;
    const token = things.caller ?? world.tokens[caller];
    const fields = listSecretFields(operation);
    await recordResponse(operation, caller, callAs(world, operation, row, token, things));
    if (fields.length === 0) return;
    // A canary in each secret field: first in a valid request, then next to an error.
    const canaries = Object.fromEntries(fields.map((name) => [name, canary("field")]));
    await recordResponse(operation, caller, callAs(world, operation, row, token, things, canaries));
    const invalid = Object.fromEntries(
      Object.keys(operation.body?.properties ?? {}).map((name) => [name, canaries[name] ?? { invalid: true }]),
    );
    await recordResponse(operation, caller, callAs(world, operation, row, token, things, invalid));
    const nested = Object.fromEntries(fields.map((name) => [name, [canary("field")]]));
    await recordResponse(operation, caller, callAs(world, operation, row, token, things, nested));
  };

  const recordResponse = async (
    { name }: Operation,
    caller: string,
    pendingResponse: Promise<Response>,
  ): Promise<void> => {
    const response = await pendingResponse;
    const head = JSON.stringify([...response.headers]);
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    const text = isStream ? await readFirstEvents(response) : await response.text();
    responses.push({ request: `${caller} ${name}`, text: head + text });
  };

  const findSecrets = (text: string): string[] =>
    [...secrets].filter(([, secret]) => text.includes(secret)).map(([name]) => name);

  testInProcess("[SC-4] no response and no stream contains a secret, except where the specification returns it", () => {
    expect(secrets.size).toBeGreaterThan(15);
    expect(responses.length).toBeGreaterThan(world.operations.length * CALLERS.length);
    const leaks = responses.flatMap(({ request, text }) =>
      findSecrets(text)
        .filter((name) => !ALLOWED_DISCLOSURES[name]?.test(request))
        .map((name) => `${name}: ${request}`),
    );
    expect([...new Set(leaks)]).toEqual([]);
    // The canaries work: they appear where they are allowed.
    const disclosed = new Set(responses.flatMap(({ text }) => findSecrets(text)));
    expect(Object.keys(ALLOWED_DISCLOSURES).filter((name) => !disclosed.has(name))).toEqual([]);
  });

  testInProcess("[SC-4] no log line contains a secret, at the most verbose level", () => {
    log("test").info("listening");
    expect(lines.at(-1)).toContain("listening");
    expect([...new Set(lines.flatMap(findSecrets))]).toEqual([]);
  });
});

/** Sorts reads before writes, so that reads find the data complete. */
const sortReadsFirst = (operations: readonly Operation[]): Operation[] =>
  [...operations].sort((a, b) => Number(a.method !== "GET") - Number(b.method !== "GET"));

const listSecretFields = ({ body }: Operation): string[] =>
  Object.keys(body?.properties ?? {}).filter((name) => SECRET_FIELD.test(name) && !NOT_SECRET.test(name));

/** Returns the first events of a stream. */
const readFirstEvents = async (response: Response): Promise<string> => {
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
};
