// Completion in a real bash, with the names of a real server.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { Organization } from "#schema/users/organization.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";
import { runVerb } from "./run-verb.ts";

const world = await forFile(openClientWorld());
await signInAs(world);
await seedTemplate(world.server, { ...ECHO, resources: [{ name: "main" }] }, { name: "fine" });
await seedTemplate(world.server, { ...ECHO, resources: [{ name: "main" }] }, { name: "finer" });
await world.runOk(["workspaces", "create", "dev-one", "--template", "fine"]);
await world.runOk(["workspaces", "create", "dev-two", "--template", "fine"]);

/** Returns bash's completions for the last word of a line. */
const complete = async (line: string, env: Record<string, string> = {}): Promise<string[]> => {
  const script = (await runVerb(["completion", "bash"])).printed;
  const words = ["slipway", ...line.split(" ")].map((word) => `'${word}'`);
  const commandLine = `COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; _slipway; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const path = `${world.home}/bin:${process.env.PATH}`;
  const child = Bun.spawn(["bash", "-c", `${script}\n${commandLine}`], {
    cwd: world.home,
    env: { PATH: path, HOME: world.home, ...env },
    stdout: "pipe",
  });
  return (await child.stdout.text()).split("\n").filter(Boolean);
};

test("[OP-11] prints a script for each supported shell and refuses other shells", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, printed } = await runVerb(["completion", shell]);
    expect([code, printed]).toEqual([0, expect.stringContaining("completion words --")]);
  }
  expect((await runVerb(["completion", "csh"])).code).toBe(2);
});

test("[OP-11] completes commands, flags and choices where they fit, and offers a flag only once", async () => {
  expect(await complete("ba")).toEqual(["backup"]);
  expect(await complete("help prov")).toEqual(["provisioner"]);
  expect(await complete("users reset-p")).toEqual(["reset-password"]);
  expect(await complete("offline users reset-f")).toEqual(["reset-factors"]);
  expect(await complete("serve --metrics")).toEqual(["--metrics-address"]);
  expect(await complete("workspaces create x --t")).toEqual(["--template", "--ttl"]);
  expect(await complete("workspaces create x --ttl 8h --t")).toEqual(["--template"]);
  expect(await complete("workspaces create x --parameter a=b --para")).toEqual(["--parameter"]);
  expect(await complete("workspaces list --output ")).toEqual(["json", "table"]);
  expect(await complete("chat new x --permissions a")).toEqual(["ask", "allow"]);
  expect(await complete("config ")).toEqual(["show", "check", "example"]);
  expect(await complete("workspaces lst ")).toEqual([]);
  expect(await complete("oauth2 ")).toEqual(["apps"]);
  expect(await complete("oauth2 apps ")).toEqual(["list", "create", "edit", "secrets", "delete"]);
  expect(await complete("oauth2 apps create x --auth-method n")).toEqual(["none"]);
});

test("[OP-11] completes names from the server: workspaces, templates, chats, users, tokens, scopes and roles", async () => {
  const admin = new Client(world.server.url, readToken(world));
  const [organization] = await admin.get<Organization[]>("/api/v2/organizations");
  const { id } = await admin.post<Chat>("/api/v2/chats", {
    organization_id: organization?.id,
    content: [{ type: "text", text: "hello" }],
  });
  await world.runOk(["tokens", "create", "nightly"]);
  await world.runOk(["oauth2", "apps", "create", "Board", "--callback-url", "http://127.0.0.1/back"]);
  expect((await complete("workspaces stop ")).sort()).toEqual(["dev-one", "dev-two"]);
  expect(await complete("workspaces start ")).toEqual([]);
  expect(await complete("workspaces stop dev-one ")).toEqual([]);
  expect(await complete("workspaces stop --no-wait dev-t")).toEqual(["dev-two"]);
  expect((await complete("workspaces create x --template f")).sort()).toEqual(["fine", "finer"]);
  expect(await complete("logs dev-o")).toEqual(["dev-one"]);
  expect(await complete("chat send ")).toEqual([id.slice(0, 8)]);
  expect(await complete("users show adm")).toEqual(["admin"]);
  expect(await complete("tokens remove ")).toEqual(["nightly"]);
  expect(await complete("oauth2 apps edit ")).toEqual(["Board"]);
  expect(await complete("tokens create x --scope workspace:st")).toEqual(["workspace:start", "workspace:stop"]);
  expect(await complete("tokens create x --scope workspace:")).toContain("workspace:*");
  expect(await complete("users roles admin --add aud")).toEqual(["auditor"]);
});

test("[OP-11] does not offer a name that a shell would not read as one word", async () => {
  const names = ["fine", ";touch$IFS;", "-x", "a b", "$(id)", "größe"].map((username) => ({ username, email: "" }));
  using hostileServer = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ users: names }) });
  const env = { SLIPWAY_URL: hostileServer.url.href, SLIPWAY_TOKEN: "x" };
  expect(await complete("users suspend ", env)).toEqual(["fine", "größe"]);
});

test("[OP-11] offers no names without a server, and files only where a file is expected", async () => {
  await Bun.write(`${world.home}/today.tar`, "");
  expect(await complete("workspaces stop ", { SLIPWAY_URL: "http://127.0.0.1:1", SLIPWAY_TOKEN: "x" })).toEqual([]);
  expect(await complete("restore tod")).toEqual(["today.tar"]);
  expect(await complete("users create x --password-file tod")).toEqual(["today.tar"]);
  expect(await complete("users create tod")).toEqual([]);
});
