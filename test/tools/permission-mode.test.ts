// Permission modes: what each mode allows without approval, and how chats get and change their mode.
import { expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { AuditLog } from "#schema/audit.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { type ChatPermissions, PERMISSION_MODES, type PermissionMode } from "#schema/chats/chat-permissions.ts";
import { Client } from "#src/client.ts";
import { decidePermission } from "#src/tools/permission.ts";
import { applyPermissionMode, type CallContext, toPermissionMode } from "#src/tools/permission-mode.ts";
import { listServerToolNames } from "#src/tools/registry.ts";
import { createChat } from "#test/support/chats.ts";
import { seedAgent, seedUser } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { Family } from "./family.ts";
import { callTools, Follower, openChat, openToolWorld } from "./world.ts";

const NO_PERMISSIONS = { permissions: null, plan_mode: null } as const;
const getPermissions = (mode: PermissionMode) => applyPermissionMode(mode, NO_PERMISSIONS).permissions;
const decide = (mode: PermissionMode, tool_name: string, args: unknown, context?: CallContext) =>
  decidePermission(getPermissions(mode), { tool_name, args }, context);

test("[PE-11] in ask mode, a chat reads without approval and asks before any other call", () => {
  // The complete list, so that a new tool is not allowed by accident.
  expect(
    listServerToolNames()
      .filter((name) => decide("ask", name, {}) === "allow")
      .sort(),
  ).toEqual(
    [
      ...["read_file", "attach_file", "process_output", "process_list", "read_skill", "read_skill_file"],
      ...["list_templates", "read_template", "list_agents", "list_subagent_models", "wait_agent"],
      ...["spawn_agent", "message_agent", "interrupt_agent"],
      ...["propose_plan", "ask_user_question"],
    ].sort(),
  );
  for (const toolName of ["execute", "write_file", "edit_files", "github__merge", "a_client_tool", "computer"]) {
    expect([toolName, decide("ask", toolName, { command: "ls", path: "a" })]).toEqual([toolName, "ask"]);
  }
});

test("[PE-11] in accept_edits mode, a chat also edits below the agent's folder without approval, except hidden files", () => {
  const context = { use: "yes", folder: "/home/ada/work" } as const;
  const edit = (path: string) => decide("accept_edits", "edit_files", { files: [{ path: "a.ts" }, { path }] }, context);
  for (const path of ["b.ts", "src/b.ts", "./b.ts", "/home/ada/work/src/b.ts"]) {
    expect([path, edit(path)]).toEqual([path, "allow"]);
    expect([path, decide("accept_edits", "write_file", { path }, context)]).toEqual([path, "allow"]);
  }
  for (const path of [
    ...["../b.ts", "src/../../b.ts", "~/.bashrc", "~ada/b", "/etc/passwd", "/home/ada/work2/b.ts", "/home/ada"],
    ...[".git/hooks/pre-commit", "src/.env", ".vscode/tasks.json", "/home/ada/work/../b", "/home/ada/work/.git/config"],
  ]) {
    expect([path, edit(path)]).toEqual([path, "ask"]);
    expect([path, decide("accept_edits", "write_file", { path }, context)]).toEqual([path, "ask"]);
  }
  for (const args of [{}, null, { files: [] }, { files: [{}] }, { path: 3 }, { files: "a" }]) {
    expect([args, decide("accept_edits", "edit_files", args, context)]).toEqual([args, "ask"]);
  }
  // With an unknown folder, no absolute path is accepted.
  expect(decide("accept_edits", "write_file", { path: "/srv/a" }, { use: "yes", folder: undefined })).toBe("ask");
  expect(decide("accept_edits", "execute", { command: "ls" }, context)).toBe("ask");
});

test("[PE-11] in plan mode, only other programs than read-only ones need approval, and the plan file does not", () => {
  const readOnlyContext = { use: "read_only", folder: undefined } as const;
  expect(decide("ask", "execute", { command: "git log | head" }, readOnlyContext)).toBe("allow");
  expect(decide("ask", "execute", { command: "curl example.com" }, readOnlyContext)).toBe("ask");
  expect(decide("ask", "write_file", { path: "~/.slipway/plans/x.md" }, { use: "plan_file", folder: undefined })).toBe(
    "allow",
  );
});

test("[PE-11] rules take precedence over the mode, and a stricter default is kept", () => {
  const rules: ChatPermissions["rules"] = [
    { tool: "execute", command: "npm test", action: "allow" },
    { tool: "read_file", action: "deny" },
  ];
  const { permissions } = applyPermissionMode("ask", { permissions: { default: "allow", rules }, plan_mode: "plan" });
  expect(permissions).toEqual({ default: "ask_changes", rules });
  expect(decidePermission(permissions, { tool_name: "execute", args: { command: "npm test" } })).toBe("allow");
  expect(decidePermission(permissions, { tool_name: "execute", args: { command: "npm run x" } })).toBe("ask");
  expect(decidePermission(permissions, { tool_name: "read_file", args: {} })).toBe("deny");
  for (const fallback of ["ask", "deny"] as const) {
    const strict = { permissions: { default: fallback, rules }, plan_mode: null };
    expect([toPermissionMode(strict), applyPermissionMode("ask", strict)]).toEqual(["ask", strict]);
  }
  for (const mode of PERMISSION_MODES) {
    expect(toPermissionMode(applyPermissionMode(mode, NO_PERMISSIONS))).toBe(mode);
  }
  // Leaving plan mode restores the previous mode.
  const planning = applyPermissionMode("plan", applyPermissionMode("accept_edits", NO_PERMISSIONS));
  expect(toPermissionMode({ ...planning, plan_mode: null })).toBe("accept_edits");
});

test("[PE-12] chats of people in a workspace on the server's machine start in ask mode; other chats do not", async () => {
  await using world = await openToolWorld({ seed: { provisioner: "local" } });
  const { owner } = world;
  const { workspace_id } = world.seeded;
  const getCreatedMode = async (options: Record<string, unknown>) =>
    (await createChat(world, "x", options)).permission_mode;
  const config = "/api/v2/chats/config";
  const loadStartingMode = (query = "") =>
    owner.get<Pick<Chat, "permission_mode">>(`${config}/starting-permissions${query}`);
  const fromUi = { client_type: "ui" };
  const otherAgent = await seedAgent(world.server);
  const { organization_id } = otherAgent;
  const otherWorld = { owner: new Client(world.server.url, otherAgent.owner_token), organization_id };
  expect(
    (await createChat(otherWorld, "x", { ...fromUi, workspace_id: otherAgent.workspace_id })).permission_mode,
  ).toBe("allow");
  expect(await getCreatedMode({ ...fromUi, workspace_id })).toBe("ask");
  expect((await loadStartingMode(`?workspace_id=${workspace_id}`)).permission_mode).toBe("ask");
  expect((await loadStartingMode()).permission_mode).toBe("allow");
  expect(await getCreatedMode({ workspace_id })).toBe("allow");
  expect(await getCreatedMode({ ...fromUi, workspace_id, permission_mode: "accept_edits" })).toBe("accept_edits");
  expect(await getCreatedMode({ ...fromUi, workspace_id, permissions: null })).toBe("allow");
  expect(await getCreatedMode({ ...fromUi, workspace_id, plan_mode: "plan" })).toBe("plan");

  const { id, permission_mode } = await createChat(world, "x", fromUi);
  expect(permission_mode).toBe("allow");
  await owner.patch(`/api/v2/chats/${id}`, { workspace_id });
  expect((await owner.get<Chat>(`/api/v2/chats/${id}`)).permission_mode).toBe("ask");

  // A user's own setting also applies to these chats.
  await owner.put<unknown>(`${config}/user-permissions`, { permissions: { default: "accept_edits", rules: [] } });
  expect(await getCreatedMode({ ...fromUi, workspace_id })).toBe("accept_edits");
  const invalidChat = { organization_id: world.organization_id, content: [{ type: "text", text: "x" }] };
  for (const invalid of [
    { permission_mode: "yolo" },
    { permission_mode: "allow", plan_mode: "plan" },
    { permission_mode: "plan", plan_mode: "" },
  ]) {
    expect((await owner.fetch("POST", "/api/v2/chats", { ...invalidChat, ...invalid })).status).toBe(400);
    expect((await owner.fetch("PATCH", `/api/v2/chats/${id}`, invalid)).status).toBe(400);
  }
});

test("[PE-13] the mode can change during a turn, keeps the rules, and is in the audit log", async () => {
  await using world = await openToolWorld();
  const { owner, home } = world;
  const rules = [{ tool: "execute", command: "touch never", action: "deny" }];
  const { id, call } = await openChat(world, { permissions: { default: "allow", rules } });
  const path = `/api/v2/chats/${id}`;
  using follower = await Follower.open(owner, id);
  const first = await callTools(world, call, ["write_file", { path: "free", content: "x" }]);
  await owner.patch(path, { permission_mode: "ask" });
  expect(await owner.get<Chat>(path)).toMatchObject({
    permission_mode: "ask",
    permissions: { default: "ask_changes", rules },
  });
  // The turn continues, and its next call waits.
  first.next.callTool("late", "write_file", { path: "late", content: "x" }).finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  expect([existsSync(join(home, "free")), existsSync(join(home, "late"))]).toEqual([true, false]);
  await owner.patch(path, { permission_mode: "plan" });
  expect((await owner.get<Chat>(path)).permission_mode).toBe("plan");
  await owner.patch(path, { permission_mode: "accept_edits" });
  await owner.post(`${path}/permissions`, { answers: [{ tool_call_id: "late", decision: "allow" }] });
  const next = await world.models.next();
  writeFileSync(join(home, "plain"), "one\n");
  const edited = await callTools(world, next, [
    "edit_files",
    { files: [{ path: join(home, "plain"), edits: [{ old_text: "one", new_text: "two" }] }] },
  ]);
  expect(edited.parts).toMatchObject([{ is_error: false }]);
  const auditor = new Client(world.server.url, (await seedUser(world.server, { roles: ["owner"] })).token);
  const { audit_logs } = await auditor.get<{ audit_logs: AuditLog[] }>("/api/v2/audit?limit=20&q=resource_type:chat");
  const changedFields = audit_logs.flatMap(({ diff }) => Object.keys(diff));
  expect(changedFields).toContain("plan_mode");
  expect(audit_logs.map(({ diff }) => diff.permissions?.new)).toContainEqual({ default: "ask_changes", rules });
});

test("[PE-13] sub-chats inherit the mode of their root", async () => {
  await using world = await openToolWorld();
  const family = new Family(world);
  const { id, call } = await family.root({ workspace_id: world.seeded.workspace_id });
  const child = await family.spawn(call, "work");
  await world.owner.patch(`/api/v2/chats/${id}`, { permission_mode: "ask" });
  expect((await family.read(child.id)).permission_mode).toBe("ask");
});

test("[PE-13] a running sub-chat only reads from the moment its root plans, and works again afterwards", async () => {
  await using world = await openToolWorld();
  const family = new Family(world);
  const { id, call } = await family.root({ workspace_id: world.seeded.workspace_id, permission_mode: "allow" });
  const child = await family.spawn(call, "work");
  const path = `/api/v2/chats/${id}`;
  const write = async (current: typeof child.call, name: string) => {
    current.callTool(name, "write_file", { path: name, content: "x" }).finish("tool_calls");
    return family.call("work");
  };
  await world.owner.patch(path, { permission_mode: "plan" });
  expect((await family.read(child.id)).permission_mode).toBe("plan");
  const refused = await write(child.call, "planned");
  expect(existsSync(join(world.home, "planned"))).toBe(false);
  await world.owner.patch(path, { permission_mode: "allow" });
  expect((await family.read(child.id)).permission_mode).toBe("allow");
  // This call of the model has been offered what a planning chat may do.
  await write(await write(refused, "late"), "allowed");
  expect(existsSync(join(world.home, "allowed"))).toBe(true);
});

test("[PE-17] an accepted edit never follows a symbolic link out of the folder or to a hidden file", async () => {
  await using world = await openToolWorld();
  const { owner, home } = world;
  using elsewhere = tempDirectory();
  const outside = realpathSync(elsewhere.path);
  writeFileSync(join(outside, "keep"), "one\n");
  mkdirSync(join(home, ".git"));
  mkdirSync(join(home, "src"));
  writeFileSync(join(home, ".git", "config"), "one\n");
  for (const [link, target] of [
    ["away", outside],
    ["src/keep", join(outside, "keep")],
    ["config", ".git/config"],
    ["dangling", join(outside, "absent")],
    ["inner", "src"],
  ] as const) {
    symlinkSync(target, join(home, link));
  }
  const { id, call } = await openChat(world, { permission_mode: "accept_edits" });
  using follower = await Follower.open(owner, id);
  const edits = [{ old_text: "one", new_text: "two" }];
  const linkedEdits = await callTools(
    world,
    call,
    ["write_file", { path: "away/new", content: "x" }],
    ["write_file", { path: "away/deep/er/new", content: "x" }],
    ["edit_files", { files: [{ path: join(home, "src/keep"), edits }] }],
    ["edit_files", { files: [{ path: "config", edits }] }],
    ["write_file", { path: "dangling", content: "x" }],
    ["write_file", { path: "inner/deep/new", content: "x" }],
    ["write_file", { path: join(home, "fresh/new"), content: "x" }],
  );
  expect(linkedEdits.parts.map(({ is_error }) => is_error)).toEqual([true, true, true, true, true, false, false]);
  expect(linkedEdits.results.slice(0, 5).map(({ error }) => error)).toEqual(
    [
      join(outside, "new"),
      join(outside, "deep/er/new"),
      join(outside, "keep"),
      join(realpathSync(home), ".git/config"),
      join(outside, "absent"),
    ].map((real) => expect.stringContaining(`leads to ${real} through a symbolic link`)),
  );
  expect(readdirSync(outside)).toEqual(["keep"]);
  expect(readFileSync(join(home, "config"), "utf8") + readFileSync(join(outside, "keep"), "utf8")).toBe("one\none\n");
  expect(existsSync(join(home, "src/deep/new"))).toBe(true);
  linkedEdits.next
    .callTool("real", "edit_files", { files: [{ path: join(outside, "keep"), edits }] })
    .finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const path = `/api/v2/chats/${id}`;
  await owner.patch(path, { permission_mode: "ask" });
  await owner.post(`${path}/permissions`, { answers: [{ tool_call_id: "real", decision: "allow" }] });
  const nextCall = await world.models.next();
  expect(readFileSync(join(outside, "keep"), "utf8")).toBe("two\n");

  // A person who approves an edit sees only the written path, so it must be the real path, both then and when the edit runs.
  writeFileSync(join(home, "plain"), "one\n");
  nextCall.callTool("linked", "write_file", { path: "inner/deep/new", content: "x" });
  nextCall.callTool("dotted", "write_file", { path: "src/../src/keep", content: "x" }).finish("tool_calls");
  const next = await world.models.next();
  const answers = next.request.messages.flatMap(({ role, content }) => (role === "tool" ? content : [])).slice(-2);
  expect(answers.map(({ result }) => result)).toEqual([
    { error: expect.stringContaining(`leads to ${join(realpathSync(home), "src/deep/new")}, which the person`) },
    { error: expect.stringContaining(`leads to ${join(outside, "keep")}, which the person`) },
  ]);
  next.callTool("plain", "write_file", { path: join(home, "plain"), content: "evil\n" }).finish("tool_calls");
  await until(async () => (await owner.get<Chat>(path)).status === "requires_action");
  unlinkSync(join(home, "plain"));
  symlinkSync(join(outside, "keep"), join(home, "plain"));
  await owner.post(`${path}/permissions`, { answers: [{ tool_call_id: "plain", decision: "allow" }] });
  const last = (await world.models.next()).request.messages.at(-1)?.content.at(-1);
  expect(last).toMatchObject({
    is_error: true,
    result: { error: expect.stringContaining(`leads to ${outside}/keep`) },
  });
  expect(readFileSync(join(outside, "keep"), "utf8")).toBe("two\n");
});
