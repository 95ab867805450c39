// Audit log entries: their content, and that an entry is stored together with its change or not at all.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { NIL_UUID } from "#base/ids.ts";
import { type Origin, withOrigin } from "#base/origin.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { computeDiff } from "#db/reports/audit/diff.ts";
import { toRetentionDays } from "#db/reports/audit/settings.ts";
import { upsertSetting } from "#db/settings.ts";
import { updateUser } from "#db/users/users.ts";
import { formatDescription } from "#domain/audit/present.ts";
import { tempDirectory } from "#test/support/server.ts";

const ORIGIN: Origin = { user_id: "u", ip: "192.0.2.7", user_agent: "tests", request_id: "r", status_code: 204 };
const entry = { now: 5, action: "write", resource_type: "organization", resource_id: "o", target: "team" } as const;

describe("the diff", () => {
  test("[AU-5] changed fields have their old and new values; created objects have zero values before, and deleted ones after", () => {
    const user = { id: "1", email: "a@b", username: "ann", name: "", roles: ["auditor"], updated_at: 3 };
    expect(computeDiff("user", user, { ...user, name: "Ann", updated_at: 9 })).toEqual({
      name: { old: "", new: "Ann", secret: false },
    });
    expect(computeDiff("user", undefined, user)).toEqual({
      id: { old: "", new: "1", secret: false },
      email: { old: "", new: "a@b", secret: false },
      username: { old: "", new: "ann", secret: false },
      rbac_roles: { old: [], new: ["auditor"], secret: false },
    });
    expect(computeDiff("user", user, undefined).rbac_roles).toEqual({ old: ["auditor"], new: [], secret: false });
    expect(computeDiff("workspace", { dormant_at: null }, { dormant_at: 86_400_000 })).toEqual({
      dormant_at: { old: null, new: "1970-01-02T00:00:00.000Z", secret: false },
    });
  });

  test("[AU-5] long values are stored as their beginning, with a digest that tells them apart", () => {
    const createName = (end: string): string => `${"x".repeat(200_000)}${end}`;
    const { name } = computeDiff("user", { name: createName("a") }, { name: createName("b") });
    expect(JSON.stringify(name).length).toBeLessThan(10_000);
    expect(name?.old).toMatch(/^x{4096}… \(200001 characters, SHA-256 [0-9a-f]{64}\)$/);
    expect(name?.new).not.toBe(name?.old);
    const roles = Array.from({ length: 1_000 }, (_, index) => `role-${index}`);
    const { rbac_roles } = computeDiff("user", { roles: [] }, { roles });
    expect(rbac_roles).toMatchObject({ old: [], new: expect.stringMatching(/^\["role-0",/) });
  });

  test("[AU-5] secrets are listed without their values", () => {
    const diffs = [
      computeDiff("user", { password_hash: "canary-1" }, { password_hash: "canary-2" }),
      computeDiff("api_key", undefined, { secret_hash: "canary-3" }),
      computeDiff("git_ssh_key", { sealed_private_key: "canary-4" }, { sealed_private_key: "canary-5" }),
      computeDiff("ai_provider", { sealed_api_key: "canary-6" }, undefined),
      computeDiff("user_chat_settings", { prompt: "canary-7" }, { prompt: "canary-8" }),
    ];
    const hidden = { old: "", new: "", secret: true };
    expect(diffs).toEqual([
      { hashed_password: hidden },
      { hashed_secret: hidden },
      { private_key: hidden },
      { api_key: hidden },
      { prompt: hidden },
    ]);
  });
});

describe("an entry", () => {
  const columns = "time, user_id, ip, user_agent, action, resource_type, resource_id, status_code, request_id";

  test("[AU-1] is in the batch of its change: a rejected batch writes neither, and a successful one both", async () => {
    using temp = tempDirectory();
    const store = openLocalStore({ directory: temp.path, cacheMb: 4, now: 0, fatal: () => {} });
    const db = new Database(join(temp.path, "slipway.db"), { readonly: true });
    const readRows = () => [
      db.query(`select ${columns} from audit_logs`).values(),
      db.query("select key from settings where key like 'probe%'").values(),
    ];
    const audited = withOrigin(
      () => ORIGIN,
      () => insertAudit(entry),
    );
    const rejected = await store
      .commit([
        upsertSetting({ key: "probe", value: "1" }),
        audited,
        updateUser("missing", { name: "x" }, { expect: 1 }),
      ])
      .catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(CommitError);
    expect(readRows()).toEqual([[], []]);
    await store.commit([upsertSetting({ key: "probe", value: "1" }), audited]);
    expect(readRows()).toEqual([[[5, "u", "192.0.2.7", "tests", "write", "organization", "o", 204, "r"]], [["probe"]]]);
    db.close();
    await store.close();
  });

  test("[AU-3] without a request the server is the initiator", () => {
    const [row = []] = insertAudit(entry).rows;
    expect(row).toContain(NIL_UUID);
    expect(row).toContain('{"automatic":"true"}');
    const [userRow = []] = insertAudit({ ...entry, user_id: "somebody" }).rows;
    expect(userRow).not.toContain('{"automatic":"true"}');
  });
});

test("[AU-9] the sentence describes the action", () => {
  const describeEntry = (action: string, resource_type: string, status_code = 200, diff: object = {}) =>
    formatDescription({ action, resource_type, status_code, diff } as Parameters<typeof formatDescription>[0]);
  const change = { old: false, new: true, secret: false };
  expect([
    describeEntry("create", "workspace"),
    describeEntry("stop", "workspace_build"),
    describeEntry("login", "api_key", 201),
    describeEntry("login", "api_key", 401),
    describeEntry("create", "api_key"),
    describeEntry("write", "git_ssh_key"),
    describeEntry("write", "convert_login"),
    describeEntry("write", "health_settings"),
    describeEntry("delete", "organization_member", 303),
    describeEntry("request_password_reset", "user"),
    describeEntry("write", "chat", 204, { archived: change }),
    describeEntry("write", "chat", 204, { archived: { ...change, new: false } }),
    describeEntry("write", "chat", 204, { user_acl: change }),
    describeEntry("write", "chat", 204, { archived: change, title: change }),
  ]).toEqual([
    "{user} created workspace {target}",
    "{user} stopped workspace {target}",
    "{user} logged in",
    "{user} unsuccessfully attempted to login",
    "{user} created token {target}",
    "{user} updated the git ssh key",
    "{user} updated login type conversion to {target}",
    "{user} updated health_settings {target}",
    "{user} was redirected attempting to delete organization member {target}",
    "password reset requested for {target}",
    "{user} archived chat {target}",
    "{user} unarchived chat {target}",
    "{user} updated sharing for chat {target}",
    "{user} updated chat {target}",
  ]);
});

test("[AU-14] the retention of a kind is the setting for sign-ins, or the kind's own setting, or the default", () => {
  const retention = { days: 90, sign_in_days: 30, kinds: { api_key: 60, workspace_build: 0 } };
  expect(toRetentionDays(retention, "api_key", "login")).toBe(30);
  expect(toRetentionDays({ ...retention, sign_in_days: null }, "api_key", "login")).toBe(60);
  expect(toRetentionDays(retention, "api_key", "create")).toBe(60);
  expect(toRetentionDays(retention, "workspace_build", "start")).toBe(0);
  expect(toRetentionDays(retention, "user", "write")).toBe(90);
});
