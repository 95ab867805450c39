// The audit log for auditors: the content of entries, search, pages, export, and access.
import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { Build } from "#schema/workspaces/build.ts";
import { ApiError, type Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { newPerson, PASSWORD } from "../users/people.ts";

type Page = { audit_logs: AuditLog[]; count: number; count_cap: number };

const search = (client: Client, q: string, page = "limit=50"): Promise<Page> =>
  client.get<Page>(`/api/v2/audit?${page}&q=${encodeURIComponent(q)}`);
const describeEntries = ({ audit_logs }: Page): string[] =>
  audit_logs.map(({ description, resource_target, user }) =>
    description.replace("{user}", user?.username ?? "-").replace("{target}", resource_target),
  );
const awaitRejection = (call: Promise<unknown>): Promise<ApiError> =>
  call.then(
    () => Promise.reject(new Error("the request succeeded")),
    (error: unknown) => (error instanceof ApiError ? error : Promise.reject(error)),
  );

const world = await forFile(openWorld({ env: { SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } }));
const { admin } = world;
const auditor = await newPerson(admin, "audrey", ["auditor"]);
const ann = await newPerson(admin, "ann");
const template = await seedTemplate(world.server);
const organization_id = template.organization_id;
const workspace = await createWorkspace(ann.client, template.template_id, "dev");
await awaitBuild(ann.client, workspace.id);
await ann.client.patch(`/api/v2/workspaces/${workspace.id}`, { name: "roof" });

describe("entry contents", () => {
  test("[AU-4] [AU-6] records the first user as the server's work, and failed sign-ins of existing accounts", async () => {
    const [firstUserEntry] = (
      await search(auditor.client, `resource_type:user action:create resource_target:${ADMIN.username}`)
    ).audit_logs;
    expect(firstUserEntry).toMatchObject({
      user: null,
      ip: null,
      additional_fields: { automatic: "true" },
      status_code: 200,
    });
    const wrongCredentials = { email: "ann@example.com", password: "not-this-one-at-all" };
    const unknown = { ...wrongCredentials, email: "unknown@example.com" };
    const request_id = uuid();
    const headers = { "x-request-id": request_id };
    expect(
      (await admin.withToken(undefined).fetch("POST", "/api/v2/users/login", wrongCredentials, { headers })).status,
    ).toBe(401);
    expect((await admin.withToken(undefined).fetch("POST", "/api/v2/users/login", unknown, { headers })).status).toBe(
      401,
    );
    const { audit_logs } = await search(auditor.client, `request_id:${request_id}`);
    expect(audit_logs).toMatchObject([
      { action: "login", resource_type: "api_key", status_code: 401, diff: {}, user: { username: "ann" } },
    ]);
    expect(audit_logs[0]?.description).toBe("{user} unsuccessfully attempted to login");
  });

  test("[AU-7] records the changes of a workspace, with links until it is deleted", async () => {
    const before = await search(auditor.client, "username:ann resource_type:workspace");
    expect(describeEntries(before)).toEqual(["ann updated workspace roof", "ann created workspace dev"]);
    expect(before.audit_logs[0]).toMatchObject({
      diff: { name: { old: "dev", new: "roof", secret: false } },
      resource_link: "/@ann/roof",
      is_deleted: false,
      resource_id: workspace.id,
      status_code: 204,
      organization_id,
      organization: { id: organization_id, name: "default" },
      ip: "127.0.0.1",
      user: { username: "ann", organization_ids: [organization_id], roles: [] },
    });
    const [build] = (await search(auditor.client, "workspace_build username:ann")).audit_logs;
    expect(build).toMatchObject({ action: "start", resource_link: "/@ann/roof/builds/1", status_code: 200 });
    expect(build?.additional_fields).toEqual({
      workspace_name: "dev",
      workspace_owner: "ann",
      workspace_id: workspace.id,
      build_number: "1",
      build_reason: "initiator",
    });
    const deletion = await ann.client.post<Build>(`/api/v2/workspaces/${workspace.id}/builds`, {
      transition: "delete",
    });
    using log = await ann.client.socket(`/api/v2/workspacebuilds/${deletion.id}/logs?follow=true`);
    await log.closed;
    const after = await search(auditor.client, `resource_id:${workspace.id}`);
    expect(describeEntries(after)[0]).toBe("ann deleted workspace roof");
    expect(after.audit_logs[0]).toMatchObject({ ip: null, status_code: 200, diff: { name: { old: "roof", new: "" } } });
    expect(after.audit_logs.map(({ is_deleted, resource_link }) => [is_deleted, resource_link])).toEqual(
      after.audit_logs.map(() => [true, ""]),
    );
  });

  test("[AU-8] records the roles that a template's access list grants and revokes", async () => {
    const [template] = await admin.get<{ id: string }[]>("/api/v2/templates");
    const path = `/api/v2/templates/${template?.id}/acl` as const;
    await admin.patch(path, { user_perms: { [ann.user.id]: "admin" } });
    await admin.patch(path, { user_perms: { [ann.user.id]: "" } });
    const { audit_logs } = await search(auditor.client, `resource_id:${template?.id}`);
    expect(audit_logs.slice(0, 2).map(({ diff }) => diff)).toEqual([
      { user_acl: { old: { [ann.user.id]: "admin" }, new: {}, secret: false } },
      { user_acl: { old: {}, new: { [ann.user.id]: "admin" }, secret: false } },
    ]);
  });

  test("[AU-8] records that a chat is created, shared and archived, but not its messages", async () => {
    const content = [{ type: "text", text: "canary of a secret plan" }];
    const chat = await ann.client.post<{ id: string }>("/api/v2/chats", { organization_id, content });
    const path = `/api/v2/chats/${chat.id}`;
    await ann.client.patch(`${path}/acl`, { user_roles: { [auditor.user.id]: "read" } });
    using stream = await ann.client.socket(`${path}/stream`);
    for await (const batch of stream) if (/"status":"(waiting|error)"/.test(String(batch))) break;
    await ann.client.patch(path, { archived: true });
    const { audit_logs } = await search(auditor.client, `resource_id:${chat.id}`);
    const name = chat.id.slice(0, 8);
    expect(describeEntries({ audit_logs, count: 0, count_cap: 0 })).toEqual([
      `ann archived chat ${name}`,
      `ann updated sharing for chat ${name}`,
      `ann created chat ${name}`,
    ]);
    expect(audit_logs[1]?.diff).toEqual({ user_acl: { old: {}, new: { [auditor.user.id]: "read" }, secret: false } });
  });

  test("[AU-5] contains no passwords, tokens or private keys", async () => {
    const password = "canary-of-a-new-Password";
    await ann.client.put("/api/v2/users/me/password", { old_password: PASSWORD, password });
    const { key } = await ann.client.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ci" });
    const { audit_logs } = await search(auditor.client, "", "limit=0");
    const allText = JSON.stringify(audit_logs);
    for (const secret of [password, PASSWORD, key.slice(11), "$argon2", "PRIVATE"])
      expect(allText).not.toContain(secret);
    const [passwordEntry] = (await search(auditor.client, "user action:write username:ann")).audit_logs;
    expect(passwordEntry?.diff).toEqual({ hashed_password: { old: "", new: "", secret: true } });
  });
});

describe("searching", () => {
  test("[AU-10] filters by each key, by a word and by days, and lists all errors of an invalid query", async () => {
    const countEntries = async (q: string): Promise<number> => (await search(admin, q)).count;
    const later = "2099-12-31";
    // Filtered by person, since the server's own actions continue in the meantime.
    const adminCount = await countEntries("username:admin");
    expect(await countEntries(`username:admin date_from:2020-01-01 date_to:${later}`)).toBe(adminCount);
    expect(await countEntries("date_to:2020-01-01")).toBe(0);
    expect(await countEntries("email:ANN@example.com action:login")).toBeGreaterThan(0);
    expect(await countEntries("username:unknown")).toBe(0);
    expect(await countEntries("username:me action:create user")).toBe(2);
    expect(await countEntries("resource_target:AUDREY resource_type:user action:create")).toBe(1);
    expect(await countEntries("build_reason:initiator organization:default")).toBe(
      await countEntries("workspace_build"),
    );
    expect(await countEntries("build_reason:autostart")).toBe(0);
    const rejection = await awaitRejection(
      search(admin, "action:dance resource_id:7 date_from:soon colour:red organization:none"),
    );
    expect([rejection.status, rejection.body.message]).toEqual([400, "Invalid audit search query."]);
    expect(rejection.body.validations?.map(({ field }) => field).sort()).toEqual(
      ["action", "colour", "date_from", "organization", "resource_id"].sort(),
    );
    expect((await awaitRejection(search(admin, "", "offset=0"))).body.validations).toEqual([
      { field: "limit", detail: "is required" },
    ]);
    expect((await awaitRejection(search(admin, "", "limit=some"))).body.validations).toEqual([
      { field: "limit", detail: "must be a whole number" },
    ]);
    for (const q of ["date_to:2026-02-30", "action:login,logout", `resource_id:${uuid()},${uuid()}`]) {
      expect((await awaitRejection(search(admin, q))).body.validations).toHaveLength(1);
    }
  });

  test("[HT-12] [AU-2] an entry has the request ID of the response, even if the caller sent none", async () => {
    const response = await admin.fetch("POST", "/api/v2/users/me/keys/tokens", { token_name: "by-id" });
    const request_id = response.headers.get("x-request-id");
    const { audit_logs } = await search(admin, `request_id:${request_id}`);
    expect(audit_logs.map(({ resource_target }) => resource_target)).toEqual(["by-id"]);
    expect((await admin.fetch("GET", "/api/v2/users/me")).headers.get("x-request-id")).toBeNull();
  });

  test("[AU-1] a change without effect leaves no entry", async () => {
    const user = await newPerson(admin, "twice");
    const path = `/api/v2/users/${user.user.id}/status`;
    for (const status of ["suspend", "suspend", "activate", "activate"]) await admin.put(`${path}/${status}`);
    const written = await search(admin, "resource_type:user action:write resource_target:twice username:admin");
    expect(written.audit_logs.map(({ diff }) => diff.status?.new)).toEqual(["active", "suspended"]);
  });

  test("[AU-12] [AU-13] returns the same pages by offset and by last entry; the export has a line per entry", async () => {
    const q = "organization username:admin";
    for (let n = 0; n < 12; n++) await admin.patch("/api/v2/organizations/default", { description: `${n}` });
    const allIds = (await search(auditor.client, q, "limit=0")).audit_logs.map(({ id }) => id);
    const byOffset: string[] = [];
    const byKey: string[] = [];
    for (let offset = 0; offset < allIds.length; offset += 5) {
      byOffset.push(...(await search(auditor.client, q, `limit=5&offset=${offset}`)).audit_logs.map(({ id }) => id));
      const after = byKey.length === 0 ? "" : `&after_id=${byKey.at(-1)}`;
      byKey.push(...(await search(auditor.client, q, `limit=5${after}`)).audit_logs.map(({ id }) => id));
    }
    expect(byOffset).toEqual(allIds);
    expect(byKey).toEqual(allIds);
    const page = await search(auditor.client, q, "limit=1");
    expect([page.count, page.count_cap]).toEqual([allIds.length, 2000]);
    const file = await auditor.client.fetch("GET", `/api/v2/audit/export?q=${encodeURIComponent(q)}`);
    expect(file.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
    const lines = (await file.text()).trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as AuditLog).id)).toEqual(allIds);
    expect(JSON.parse(lines[0] ?? "")).toEqual(page.audit_logs[0]);
    expect((await awaitRejection(search(admin, "", `limit=1&after_id=${uuid()}`))).status).toBe(400);
  });
});

test("[AU-15] shows auditors of an organization only its entries; only an owner sets the retention", async () => {
  const organizationAuditor = await newPerson(admin, "lea");
  expect((await awaitRejection(search(organizationAuditor.client, ""))).status).toBe(403);
  const team = await admin.post<{ id: string }>("/api/v2/organizations", { name: "team" });
  await admin.post(`/api/v2/organizations/${team.id}/members/lea`);
  await admin.put(`/api/v2/organizations/${team.id}/members/lea/roles`, { roles: ["organization-auditor"] });
  expect(describeEntries(await search(organizationAuditor.client, ""))).toEqual([
    "admin updated organization member lea",
    "admin created organization member lea",
    "admin created organization team",
  ]);
  expect((await search(organizationAuditor.client, "organization:default")).count).toBe(0);
  const retention = { days: 365, sign_in_days: 30, kinds: { workspace_build: 90 } };
  expect((await awaitRejection(auditor.client.put("/api/v2/audit/retention", retention))).status).toBe(403);
  expect(
    (await awaitRejection(admin.put("/api/v2/audit/retention", { ...retention, kinds: { cake: 1 } }))).status,
  ).toBe(400);
  await admin.put("/api/v2/audit/retention", retention);
  expect(await auditor.client.get<typeof retention>("/api/v2/audit/retention")).toEqual(retention);
  // Entries of rejections are written slightly later, possibly in the same millisecond.
  expect(describeEntries(await search(admin, "audit_settings")).sort()).toEqual([
    "admin unsuccessfully attempted to write audit settings retention",
    "admin updated audit settings retention",
    "audrey unsuccessfully attempted to write audit settings retention",
  ]);
});
