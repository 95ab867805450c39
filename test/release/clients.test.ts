// A release's clients, installed as a user would install them. Programs in Node and Python use them with a real server behind a proxy that
// breaks connections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatMessage } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { openChatWorld, sendMessage, toTextContent } from "#test/support/chats.ts";
import { ROOT, readPage } from "#test/support/documents.ts";
import type { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { type Need, needs, testNeeding } from "#test/support/needs.ts";
import { startCuttingProxy } from "#test/support/net/cutting-proxy.ts";
import { readLines } from "#test/support/net/lines.ts";
import { createTestRelease } from "#test/support/release.ts";
import { ADMIN, type TestServer } from "#test/support/server.ts";
import { TYPE_CHECKER } from "#test/support/type-checker.ts";
import { until } from "#test/support/until.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";

let release: Awaited<ReturnType<typeof createTestRelease>>;
let server: TestServer;
let world: { owner: Client; models: ScriptedModels; organization_id: string; template_id: string };
let proxy: Awaited<ReturnType<typeof startCuttingProxy>>;
/** A template whose builds print a few lines and end when they are canceled. */
let endlessTemplateId: string;
/** A user's project with both clients installed. */
const project = mkdtempSync(join(tmpdir(), "slipway-clients-"));

beforeAll(async () => {
  let models: ScriptedModels;
  [release, { server, models }] = await Promise.all([createTestRelease({ only: ["clients"] }), openChatWorld()]);
  proxy = await startCuttingProxy(server.url);
  const template = await seedTemplate(server);
  const echo = { logs: Array.from({ length: 40 }, (_, i) => `line ${i}`), hang: true };
  ({ template_id: endlessTemplateId } = await seedTemplate(server, Object.assign({ echo }, ECHO)));
  const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  world = Object.assign({ server, models, owner }, template);
  const packagesFolder = join(project, "node_modules/@slipway");
  mkdirSync(packagesFolder, { recursive: true });
  runCommand(["tar", "-xzf", join(release.out, "npm/slipway-client-0.2.0.tgz"), "-C", packagesFolder]);
  runCommand(["mv", join(packagesFolder, "package"), join(packagesFolder, "client")]);
  const python = join(release.out, "python");
  const wheel = join(python, readdirSync(python).find((name) => name.endsWith(".whl")) ?? "");
  if (needs.python3.found) runCommand([needs.python3.file, "-m", "zipfile", "-e", wheel, join(project, "python")]);
  for (const name of ["typescript/example.mjs", "python/example.py"])
    copyFileSync(join(ROOT, "deploy/clients", name), join(project, name.split("/")[1] ?? ""));
  writeFileSync(join(project, "follow.mjs"), FOLLOW_MJS);
  writeFileSync(join(project, "act.mjs"), ACT_MJS);
  writeFileSync(join(project, "limits.mjs"), LIMITS_MJS);
  writeFileSync(join(project, "limits.py"), LIMITS_PY);
  writeFileSync(join(project, "follow.py"), FOLLOW_PY);
  writeFileSync(join(project, "act.py"), ACT_PY);
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  release[Symbol.dispose]();
  rmSync(project, { recursive: true, force: true });
});

const FOLLOW_MJS = `
import { Slipway } from "@slipway/client";
const [, , kind, id] = process.argv;
const slipway = new Slipway({ url: process.env.SLIPWAY_URL, token: process.env.SLIPWAY_TOKEN });
const streams = { chat: () => slipway.followChat(id), log: () => slipway.followBuildLog(id) };
for await (const event of streams[kind]()) console.log(JSON.stringify(event));
`;
const FOLLOW_PY = `
import json, os, sys
from slipway_client import Slipway
kind, id = sys.argv[1:]
slipway = Slipway(os.environ["SLIPWAY_URL"], os.environ["SLIPWAY_TOKEN"])
for event in slipway.follow_chat(id) if kind == "chat" else slipway.follow_build_log(id):
    print(json.dumps(event), flush=True)
`;
const ACT_MJS = `
import { Slipway, SlipwayError } from "@slipway/client";
const [, , organization_id, template_id, prefix] = process.argv;
const slipway = new Slipway({ url: process.env.SLIPWAY_URL, token: process.env.SLIPWAY_TOKEN });
const tell = async (work) => {
  try {
    console.log(JSON.stringify({ name: (await work()).name ?? "made" }));
  } catch (error) {
    if (!(error instanceof SlipwayError)) throw error;
    const { status, message, validations } = error;
    console.log(JSON.stringify({ status, message, validations: validations.map(({ field }) => field) }));
  }
};
const workspace = (name) => () => slipway.createWorkspace({ path: { user: "me" }, body: { name, template_id } });
await tell(() => slipway.createChat({ body: { organization_id, content: [{ type: "text", text: prefix }] } }));
await tell(workspace(prefix + "-lost"));
await tell(workspace(prefix + "-busy"));
await tell(workspace("no good"));
await tell(() => slipway.getWorkspace({ path: { workspace: "00000000-0000-4000-8000-000000000000" } }));
`;
const ACT_PY = `
import json, os, sys
from slipway_client import Slipway, SlipwayError
organization_id, template_id, prefix = sys.argv[1:]
slipway = Slipway(os.environ["SLIPWAY_URL"], os.environ["SLIPWAY_TOKEN"])
def tell(work):
    try:
        print(json.dumps({"name": work().get("name", "made")}))
    except SlipwayError as error:
        fields = [one.field for one in error.validations]
        print(json.dumps({"status": error.status, "message": error.message, "validations": fields}))
def workspace(name):
    return lambda: slipway.create_workspace("me", body={"name": name, "template_id": template_id})
content = [{"type": "text", "text": prefix}]
tell(lambda: slipway.create_chat(body={"organization_id": organization_id, "content": content}))
tell(workspace(prefix + "-lost"))
tell(workspace(prefix + "-busy"))
tell(workspace("no good"))
tell(lambda: slipway.get_workspace("00000000-0000-4000-8000-000000000000"))
`;

const LIMITS_MJS = `
import { Slipway, SlipwayError } from "@slipway/client";
const url = process.env.SLIPWAY_URL;
const tell = async (work) => {
  const error = await work.catch((error) => error);
  const isOurs = error instanceof SlipwayError;
  console.log(JSON.stringify(isOurs ? [error.status, error.detail, error.retryAfterMs / 1000 || 0] : [error.name]));
};
await tell(new Slipway({ url, timeoutMs: 300, retries: 1 }).getBuildInfo());
await tell(new Slipway({ url }).getBuildInfo());
await tell(new Slipway({ url }).getBuildInfo({ signal: AbortSignal.timeout(300) }));
`;
const LIMITS_PY = `
import json, os
from slipway_client import Slipway, SlipwayError
url = os.environ["SLIPWAY_URL"]
def tell(slipway):
    try:
        slipway.get_build_info()
    except SlipwayError as error:
        print(json.dumps([error.status, error.detail, error.retry_after or 0]))
tell(Slipway(url, timeout=0.3, retries=1))
tell(Slipway(url))
`;

const runCommand = (command: string[]): void => {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: project });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
};

type Language = { readonly name: string; readonly need: Need; command(script: string): string[] };

const LANGUAGES: readonly Language[] = [
  { name: "TypeScript", need: needs.node, command: (script) => [needs.node.file, `${script}.mjs`] },
  { name: "Python", need: needs.python3, command: (script) => [needs.python3.file, "-W", "error", `${script}.py`] },
];

/** Starts a program that uses the client with the server behind the proxy. */
const startProgram = ({ command }: Language, script: string, ...args: string[]) => {
  const child = Bun.spawn([...command(script), ...args], {
    cwd: project,
    env: {
      PATH: process.env.PATH,
      HOME: project,
      TEST_RUN_MARK: process.env.TEST_RUN_MARK,
      PYTHONPATH: join(project, "python"),
      PYTHONDONTWRITEBYTECODE: "1",
      SLIPWAY_URL: proxy.url,
      SLIPWAY_TOKEN: world.owner.token,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines = readLines(child.stdout);
  return {
    child,
    /** Reads until a line matches; returns all lines since the last call. */
    async until(matches: (line: string) => boolean): Promise<string[]> {
      const read: string[] = [];
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`the program ended after ${read.join("\n")}: ${await child.stderr.text()}`);
        read.push(value);
        if (matches(value)) return read;
      }
    },
    /** Reads all lines to the end. */
    async rest(): Promise<string[]> {
      const read: string[] = [];
      for await (const line of lines) read.push(line);
      expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
      return read;
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
};

const isWaiting = (line: string): boolean => {
  const event = JSON.parse(line) as ChatEvent;
  return event.type === "status" && event.status.status === "waiting";
};
const parseIds = (lines: readonly string[]): number[] =>
  lines
    .map((line) => JSON.parse(line) as ChatEvent)
    .flatMap((event) => (event.type === "message" ? [event.message.id] : []));
const listHistoryIds = async (chat: string): Promise<number[]> => {
  const { messages } = await world.owner.get<{ messages: ChatMessage[] }>(`/api/v2/chats/${chat}/messages`);
  return messages.map(({ id }) => id).reverse();
};

for (const language of LANGUAGES) {
  describe(language.name, () => {
    const testClient = (title: string, work: () => Promise<void>) => testNeeding([language.need], title, work);

    testClient("[RL-9] the example creates a workspace and a chat in it, and prints the output of both", async () => {
      await using example = startProgram(language, "example", world.template_id, "Say hello");
      (await world.models.next()).say("Hello from ", "the model").finish();
      const lines = await example.rest();
      expect(lines.join("\n")).toContain("user Say hello\nassistant Hello from the model");
      const { workspaces } = await world.owner.get<{ workspaces: Workspace[] }>("/api/v2/workspaces?q=name:example");
      const [workspace] = workspaces;
      expect(workspace?.latest_build.status).toBe("running");
      await world.owner.post(`/api/v2/workspaces/${workspace?.id}/builds`, { transition: "delete" });
      await until(
        async () => (await world.owner.get<{ count: number }>("/api/v2/workspaces?q=name:example")).count === 0,
        { what: "the name is free" },
      );
    });

    testClient(
      "[RL-10] retries lost and temporarily refused requests unless they could take effect twice",
      async () => {
        const prefix = language.name.toLowerCase();
        proxy.seen.length = 0;
        // The chat's first response is lost, two retries are refused, and the last one succeeds with the same key. The first workspace's
        // response is lost. The second workspace is refused once.
        proxy.fates.push("lost", 503, 429, "passes", "lost", 429);
        const program = startProgram(language, "act", world.organization_id, world.template_id, prefix);
        (await world.models.next()).say("once").finish();
        const results = (await program.rest()).map((line) => JSON.parse(line));
        expect(results).toEqual([
          { name: "made" },
          { status: 0, message: `No answer from ${proxy.url}.`, validations: [] },
          { name: `${prefix}-busy` },
          { status: 400, message: "Validation failed.", validations: ["name"] },
          { status: 404, message: expect.any(String), validations: [] },
        ]);
        const chats = await world.owner.get<{ title: string }[]>(`/api/v2/chats?q=title:${prefix}`);
        expect(chats.length).toBe(1);
        expect(proxy.seen.map((line) => line.replace("/api/v2", ""))).toEqual([
          "POST /chats lost",
          "POST /chats 503",
          "POST /chats 429",
          "POST /chats",
          "POST /users/me/workspaces lost",
          "POST /users/me/workspaces 429",
          "POST /users/me/workspaces",
          "POST /users/me/workspaces",
          "GET /workspaces/00000000-0000-4000-8000-000000000000",
        ]);
      },
    );

    testClient("[RL-10] fails after its timeout, after too long a pause, and when aborted", async () => {
      proxy.seen.length = 0;
      proxy.fates.push("hangs", "hangs", "429 for an hour", "hangs");
      const results = (await startProgram(language, "limits").rest()).map((line) => JSON.parse(line));
      const [timedOut, busy, aborted] = results;
      expect(timedOut).toEqual([0, expect.stringMatching(/no answer within 300 ms|timed out/), 0]);
      expect(busy).toEqual([429, "<html>busy</html>", 3600]);
      // Python has no signals for aborting.
      expect(aborted).toEqual(language.name === "Python" ? undefined : ["TimeoutError"]);
      expect(proxy.seen.length).toBe(language.name === "Python" ? 3 : 4);
      proxy.fates.length = 0;
      proxy.cut();
    });

    testClient("[RL-11] a chat's stream resumes after each broken connection, with each message once", async () => {
      const { id } = await world.owner.post<{ id: string }>("/api/v2/chats", {
        organization_id: world.organization_id,
        content: toTextContent("one"),
      });
      await using follower = startProgram(language, "follow", "chat", id);
      (await world.models.next()).say("first").finish();
      const messageIds = parseIds(await follower.until(isWaiting));
      proxy.fates.push(503, 502);
      proxy.cut();
      await sendMessage(world, id, "two");
      const modelCall = await world.models.next();
      modelCall.say("sec");
      messageIds.push(...parseIds(await follower.until((line) => line.includes('"sec'))));
      proxy.cut();
      modelCall.say("ond").finish();
      messageIds.push(
        ...parseIds(await follower.until((line) => line.includes("second") && line.includes('"assistant"'))),
      );
      await until(async () => (await listHistoryIds(id)).length === 4, { what: "the turn has ended" });
      expect(messageIds.filter((messageId, i) => messageIds.indexOf(messageId) === i)).toEqual(messageIds);
      expect(new Set(messageIds)).toEqual(new Set(await listHistoryIds(id)));

      // The last received messages are deleted while no client is connected.
      proxy.fates.push(503, 503);
      proxy.cut();
      const [first = 0] = await listHistoryIds(id);
      await world.owner.patch(`/api/v2/chats/${id}/messages/${first}`, { content: toTextContent("three") });
      (await world.models.next()).say("third").finish();
      const lines = await follower.until((line) => line.includes("third") && line.includes('"assistant"'));
      const reset = lines.findLastIndex((line) => JSON.parse(line).type === "history_reset");
      expect(reset).toBeGreaterThanOrEqual(0);
      expect(parseIds(lines.slice(reset))).toEqual(await listHistoryIds(id));
    });

    testClient("[RL-11] a build's log resumes after the last line, and ends with the build", async () => {
      const name = `logged-${language.name.toLowerCase()}`;
      const created = await world.owner.post<Workspace>("/api/v2/users/me/workspaces", {
        name,
        template_id: endlessTemplateId,
      });
      const build = `/api/v2/workspacebuilds/${created.latest_build.id}`;
      await using follower = startProgram(language, "follow", "log", created.latest_build.id);
      const lines = await follower.until((line) => line.includes("line 39"));
      proxy.fates.push(503, "lost");
      proxy.cut();
      await world.owner.patch(`${build}/cancel`);
      lines.push(...(await follower.rest()));
      const ids = lines.map((line) => (JSON.parse(line) as JobLog).id);
      const logs = await world.owner.get<JobLog[]>(`${build}/logs`);
      expect(ids).toEqual(logs.map(({ id }) => id));
    });
  });
}

test("[RL-9] the npm package's types compile in strict mode and reject invalid requests", async () => {
  writeFileSync(
    join(project, "typed.ts"),
    `import { type Schemas, Slipway } from "@slipway/client";
const slipway = new Slipway({ url: "http://localhost" });
export const made: Schemas["Workspace"] = await slipway.createWorkspace({ path: { user: "me" }, body: { name: "a" } });
export const all: number = (await slipway.listWorkspaces()).count;
for await (const workspace of slipway.watchWorkspace({ path: { workspace: made.id } })) workspace.latest_build.status satisfies string;
const bytes: Blob | string = await slipway.downloadFile({ path: { file: "id" } });
// @ts-expect-error the path has no user
slipway.createWorkspace({ body: { name: "a" } });
// @ts-expect-error there is no such member
slipway.createWorkspace({ path: { user: "me" }, body: { name: "a", color: "red" } });
// @ts-expect-error a required member is missing
slipway.createChat({ body: { content: [] } });
export default bytes;
`,
  );
  const options = { target: "ES2022", module: "NodeNext", lib: ["ES2023", "DOM", "DOM.AsyncIterable"], types: [] };
  const compilerOptions = Object.assign({ strict: true, checkJs: true, allowJs: true, noEmit: true }, options);
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: Object.assign({ exactOptionalPropertyTypes: true }, compilerOptions),
      files: ["typed.ts"],
    }),
  );
  const tsc = Bun.spawnSync([process.execPath, ...TYPE_CHECKER, "-p", project]);
  expect(tsc.stdout.toString()).toBe("");
  expect(tsc.exitCode).toBe(0);
});

test("[RL-9] the documentation page contains the current examples", () => {
  const page = readPage("docs/clients.md");
  expect(page).toContain(`\`\`\`js\n${readPage("deploy/clients/typescript/example.mjs")}\`\`\``);
  expect(page).toContain(`\`\`\`py\n${readPage("deploy/clients/python/example.py")}\`\`\``);
});
