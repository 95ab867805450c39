// The dotfiles of an account: setting them, invalid values, and the agents that get a script to install them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Dotfiles } from "#schema/users/dotfiles.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiError, Client } from "#src/client.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, createBuild, openWorld, seedTemplate, type World } from "#test/support/workspaces.ts";
import { fetchStatus } from "./people.ts";

const DOTFILES_PATH = "/api/v2/users/me/dotfiles";
const NO_DOTFILES: Dotfiles = { url: "", branch: "", install_command: "" };
const DOTFILES: Dotfiles = { url: "https://git.example.com/ada/dot's", branch: "main", install_command: "make all" };
const INSTALL_SCRIPT = `SLIPWAY_GIT_NO_WAIT=1 exec "$CODER_SCRIPT_BIN_DIR/slipway" dotfiles --yes --replace --branch='main' --install-command='make all' 'https://git.example.com/ada/dot'\\''s'\n`;
/** Two agents; the second may not have the owner's data. */
const createManifest = (token: string): Manifest => ({
  provisioner: "echo",
  resources: [
    {
      name: "main",
      agents: [
        { name: "main", token, scripts: [{ display_name: "Own", script: "true", run_on_start: true }] },
        { name: "bare", api_key_scope: "no_user_data" },
      ],
    },
  ],
});
let world: World;
let ada: Client;

beforeAll(async () => {
  world = await openWorld();
  ada = world.admin.withToken((await seedUser(world.server, { username: "ada" })).token);
});
afterAll(() => world[Symbol.asyncDispose]());

const listAgents = async (id: string): Promise<WorkspaceAgent[]> => {
  await awaitBuild(world.admin, id);
  const { latest_build } = await world.admin.get<Workspace>(`/api/v2/workspaces/${id}`);
  return latest_build.resources.flatMap(({ agents = [] }) => agents);
};
const listInstallScripts = (agents: readonly WorkspaceAgent[]) =>
  agents.map(({ name, scripts }) => [
    name,
    ...scripts.filter(({ is_dotfiles }) => is_dotfiles).map(({ script }) => script),
  ]);

test("[DF-1] users set and remove their dotfiles; invalid URLs, passwords, and tokens without the scope are rejected", async () => {
  const getPutStatus = (body: object) => fetchStatus(ada, "PUT", "/users/me/dotfiles", body);
  expect(await ada.get<Dotfiles>(DOTFILES_PATH)).toEqual(NO_DOTFILES);
  expect(await ada.put<Dotfiles>(DOTFILES_PATH, DOTFILES)).toEqual(DOTFILES);
  for (const invalid of [
    ...["", "dotfiles", "/srv/dotfiles", "file:///srv/dotfiles", "ext::sh -c true", "--upload-pack=x", "https://"],
    ...["https://t0ken@git.example.com/a/b", "https://a:b@git.example.com/a/b", "ssh://a:b@git.example.com/a/b"],
    "https://git.example.com/a/b?access_token=s",
    ...["https://git.example.com", "git@git.example.com:-b", "https://git.example.com/a b", "https://-x.example.com/a"],
    ...["-x@git.example.com:a/b", "ssh://-x@git.example.com/a/b", "ssh://a%0ab/x/y", "ssh://a%20b/x/y"],
  ]) {
    expect([invalid, await getPutStatus({ url: invalid })]).toEqual([invalid, 400]);
  }
  for (const overrides of [{ branch: "--orphan" }, { branch: "a b" }, { install_command: "a\nb" }, { unknown: 1 }]) {
    expect([overrides, await getPutStatus({ url: DOTFILES.url, ...overrides })]).toEqual([overrides, 400]);
  }
  const error = await ada.put(DOTFILES_PATH, { url: "https://t0ken@git.example.com/a/b" }).catch((error) => error);
  expect((error as ApiError).body.validations).toEqual([
    { field: "url", detail: "must not contain a password or token; link your account at the host instead" },
  ]);
  expect(await ada.get<Dotfiles>(DOTFILES_PATH)).toEqual(DOTFILES);
  expect([
    await fetchStatus(world.admin, "GET", "/users/ada/dotfiles"),
    await fetchStatus(world.admin, "PUT", "/users/ada/dotfiles", { url: DOTFILES.url }),
    await fetchStatus(ada, "GET", "/users/admin/dotfiles"),
  ]).toEqual([403, 403, 404]);
  for (const [scopes, status] of [
    [["user:update_personal"], 403],
    [["user:update_personal", "workspace:ssh"], 200],
  ] as const) {
    const { key } = await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes });
    expect(await fetchStatus(ada.withToken(key), "PUT", "/users/me/dotfiles", DOTFILES)).toBe(status);
  }
  for (const url of ["git@git.example.com:ada/dotfiles.git", "ssh://git@git.example.com:2222/ada/dotfiles"]) {
    expect(await ada.put<Dotfiles>(DOTFILES_PATH, { url })).toEqual({ url, branch: "", install_command: "" });
  }
  await ada.delete(DOTFILES_PATH);
  expect(await ada.get<Dotfiles>(DOTFILES_PATH)).toEqual(NO_DOTFILES);
});

test("[DF-2] [DF-3] agents and their child agents get an install script if the owner and the template allow it", async () => {
  const token = crypto.randomUUID();
  const admin = world.admin;
  const { template_id } = await seedTemplate(world.server, createManifest(token));
  const path = `/api/v2/templates/${template_id}` as const;
  expect((await admin.get<Template>(path)).allow_dotfiles).toBe(true);
  const createNamed = (name: string) => admin.post<Workspace>("/api/v2/users/me/workspaces", { name, template_id });
  const { id } = await createNamed("early");
  expect(listInstallScripts(await listAgents(id))).toEqual([["main"], ["bare"]]);
  await admin.put(DOTFILES_PATH, DOTFILES);
  // A running workspace gets them at its next start.
  expect(listInstallScripts(await listAgents(id))).toEqual([["main"], ["bare"]]);
  await createBuild(admin, id, "start");
  const agents = await listAgents(id);
  expect(listInstallScripts(agents)).toEqual([["main", INSTALL_SCRIPT], ["bare"]]);
  const [first, second] = agents.find(({ name }) => name === "main")?.scripts ?? [];
  expect([first, second]).toMatchObject([
    { display_name: "Dotfiles", run_on_start: true, start_blocks_login: false, timeout: 300e9 },
    { display_name: "Own" },
  ]);
  expect(second?.is_dotfiles).toBeUndefined();
  await using agent = await connectAgent(world.server, token);
  const { scripts } = await agent.agent.getManifest({});
  expect(scripts.map(({ isDotfiles, displayName }) => [isDotfiles, displayName])).toEqual([
    [true, "Dotfiles"],
    [false, "Own"],
  ]);
  const child = await agent.agent.createSubAgent({ name: "inside", directory: "/workspaces/app" });
  await using childAgent = await connectAgent(world.server, formatUuid(child.agent?.authToken));
  const [childScript] = (await childAgent.agent.getManifest({})).scripts;
  expect(childScript).toMatchObject({
    isDotfiles: true,
    script: INSTALL_SCRIPT,
    runOnStart: true,
    timeout: { seconds: 300n },
  });
  // The child agent can log lines with the script's source.
  const line = { output: "from inside", level: 2 };
  await childAgent.agent.batchCreateLogs({ logSourceId: childScript?.logSourceId ?? uuidToBytes(token), logs: [line] });
  // A start by another person does not use the owner's dotfiles.
  const bob = await seedUser(world.server, { username: "bob", roles: ["template-admin"] });
  await createBuild(world.admin.withToken(bob.token), id, "start");
  expect(listInstallScripts(await listAgents(id))).toEqual([["main"], ["bare"]]);
  await admin.patch(path, { allow_dotfiles: false });
  expect(listInstallScripts(await listAgents((await createNamed("forbidden")).id))).toEqual([["main"], ["bare"]]);
  await admin.patch(path, { allow_dotfiles: true });
  await admin.delete(DOTFILES_PATH);
  expect(listInstallScripts(await listAgents((await createNamed("removed")).id))).toEqual([["main"], ["bare"]]);
});

const formatUuid = (bytes: Uint8Array | undefined): string => uuidFromBytes(bytes ?? new Uint8Array(16));
