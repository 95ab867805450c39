// The dotfiles of an account: who sets them, what is rejected, and which agents get a script that installs them.
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

const D = "/api/v2/users/me/dotfiles";
const NO_DOTFILES: Dotfiles = { url: "", branch: "", install_command: "" };
const SET: Dotfiles = { url: "https://git.example.com/ada/dot's", branch: "main", install_command: "make all" };
const TEXT = `SLIPWAY_GIT_NO_WAIT=1 exec "$CODER_SCRIPT_BIN_DIR/slipway" dotfiles --yes --replace --branch='main' --install-command='make all' 'https://git.example.com/ada/dot'\\''s'\n`;
/** Two agents: the second may have nothing of the owner's. */
const manifest = (token: string): Manifest => ({
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
const installs = (agents: readonly WorkspaceAgent[]) =>
  agents.map(({ name, scripts }) => [name, ...scripts.filter((one) => one.is_dotfiles).map(({ script }) => script)]);

test("[DF-1] users set and remove their own dotfiles; a URL that Git would not clone, a password, and a token that may not run code in workspaces are refused and change nothing", async () => {
  const putStatus = (body: object) => fetchStatus(ada, "PUT", "/users/me/dotfiles", body);
  expect(await ada.get<Dotfiles>(D)).toEqual(NO_DOTFILES);
  expect(await ada.put<Dotfiles>(D, SET)).toEqual(SET);
  for (const wrong of [
    ...["", "dotfiles", "/srv/dotfiles", "file:///srv/dotfiles", "ext::sh -c true", "--upload-pack=x", "https://"],
    ...["https://t0ken@git.example.com/a/b", "https://a:b@git.example.com/a/b", "ssh://a:b@git.example.com/a/b"],
    "https://git.example.com/a/b?access_token=s",
    ...["https://git.example.com", "git@git.example.com:-b", "https://git.example.com/a b", "https://-x.example.com/a"],
    ...["-x@git.example.com:a/b", "ssh://-x@git.example.com/a/b", "ssh://a%0ab/x/y", "ssh://a%20b/x/y"],
  ]) {
    expect([wrong, await putStatus({ url: wrong })]).toEqual([wrong, 400]);
  }
  for (const more of [{ branch: "--orphan" }, { branch: "a b" }, { install_command: "a\nb" }, { unknown: 1 }]) {
    expect([more, await putStatus({ url: SET.url, ...more })]).toEqual([more, 400]);
  }
  const error = await ada.put(D, { url: "https://t0ken@git.example.com/a/b" }).catch((error) => error);
  expect((error as ApiError).body.validations).toEqual([
    { field: "url", detail: "must not contain a password or token; link your account at the host instead" },
  ]);
  expect(await ada.get<Dotfiles>(D)).toEqual(SET);
  expect([
    await fetchStatus(world.admin, "GET", "/users/ada/dotfiles"),
    await fetchStatus(world.admin, "PUT", "/users/ada/dotfiles", { url: SET.url }),
    await fetchStatus(ada, "GET", "/users/admin/dotfiles"),
  ]).toEqual([403, 403, 404]);
  for (const [scopes, status] of [
    [["user:update_personal"], 403],
    [["user:update_personal", "workspace:ssh"], 200],
  ] as const) {
    const { key } = await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes });
    expect(await fetchStatus(ada.withToken(key), "PUT", "/users/me/dotfiles", SET)).toBe(status);
  }
  for (const url of ["git@git.example.com:ada/dotfiles.git", "ssh://git@git.example.com:2222/ada/dotfiles"]) {
    expect(await ada.put<Dotfiles>(D, { url })).toEqual({ url, branch: "", install_command: "" });
  }
  await ada.delete(D);
  expect(await ada.get<Dotfiles>(D)).toEqual(NO_DOTFILES);
});

test("[DF-2] [DF-3] agents of the owner's workspaces and their child agents get a script, unless owner data, the template's permission or the dotfiles are missing", async () => {
  const token = crypto.randomUUID();
  const admin = world.admin;
  const { template_id } = await seedTemplate(world.server, manifest(token));
  const path = `/api/v2/templates/${template_id}` as const;
  expect((await admin.get<Template>(path)).allow_dotfiles).toBe(true);
  const create = (name: string) => admin.post<Workspace>("/api/v2/users/me/workspaces", { name, template_id });
  const { id } = await create("early");
  expect(installs(await listAgents(id))).toEqual([["main"], ["bare"]]);
  await admin.put(D, SET);
  // Running workspaces apply them at their next start.
  expect(installs(await listAgents(id))).toEqual([["main"], ["bare"]]);
  await createBuild(admin, id, "start");
  const agents = await listAgents(id);
  expect(installs(agents)).toEqual([["main", TEXT], ["bare"]]);
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
  await using inside = await connectAgent(world.server, uuidText(child.agent?.authToken));
  const [copy] = (await inside.agent.getManifest({})).scripts;
  expect(copy).toMatchObject({ isDotfiles: true, script: TEXT, runOnStart: true, timeout: { seconds: 300n } });
  // Its lines have their own source.
  const line = { output: "from inside", level: 2 };
  await inside.agent.batchCreateLogs({ logSourceId: copy?.logSourceId ?? uuidToBytes(token), logs: [line] });
  // A start by another person uses nothing of the owner's.
  const bob = await seedUser(world.server, { username: "bob", roles: ["template-admin"] });
  await createBuild(world.admin.withToken(bob.token), id, "start");
  expect(installs(await listAgents(id))).toEqual([["main"], ["bare"]]);
  await admin.patch(path, { allow_dotfiles: false });
  expect(installs(await listAgents((await create("forbidden")).id))).toEqual([["main"], ["bare"]]);
  await admin.patch(path, { allow_dotfiles: true });
  await admin.delete(D);
  expect(installs(await listAgents((await create("removed")).id))).toEqual([["main"], ["bare"]]);
});

const uuidText = (bytes: Uint8Array | undefined): string => uuidFromBytes(bytes ?? new Uint8Array(16));
