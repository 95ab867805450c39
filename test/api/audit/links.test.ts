// Audit log entries for linking and unlinking an account at another service.
import { expect, test } from "bun:test";
import type { AuditLog } from "#schema/audit.ts";
import { Client } from "#src/client.ts";
import { ADMIN } from "#test/support/server.ts";
import { FakeProvider } from "../external-auth/provider.ts";
import { link, startWith } from "../external-auth/world.ts";

test("[AU-2] linking, relinking and unlinking each write an entry without the tokens", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await link(admin, provider, "git");
  await link(admin, provider, "git");
  await admin.delete("/api/v2/external-auth/git");
  const { audit_logs } = await admin.get<{ audit_logs: AuditLog[] }>("/api/v2/audit?limit=9&q=external_auth_link");
  expect(audit_logs.map(({ action, resource_target, user }) => [action, resource_target, user?.username])).toEqual([
    ["delete", "git", "admin"],
    ["write", "git", "admin"],
    ["create", "git", "admin"],
  ]);
  expect(audit_logs[1]?.diff.tokens).toEqual({ old: "", new: "", secret: true });
});
