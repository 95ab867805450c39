// Audit log entries of changes without a request, the export, and the deletion of old entries. Uses a store without a server.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { auditRetention } from "#actors/audit/retention.ts";
import { openLocalStore } from "#db/engine/local.ts";
import type { Query } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { upsertAuditRetention } from "#db/reports/audit/settings.ts";
import { prepareIdentity } from "#domain/users/first-user.ts";
import { MachineAccounts } from "#domain/users/machine.ts";
import { Passwords } from "#domain/users/passwords.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { exportAudit } from "#src/api/audit/export.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory, testConfig } from "#test/support/server.ts";

const DAY = 86_400_000;
const WITHOUT_ADMIN = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };

const openWorld = () => {
  const temp = tempDirectory();
  const clock = new ManualClock();
  const store = openLocalStore({ directory: temp.path, cacheMb: 4, now: clock.now(), fatal: () => {} });
  const reader = new Database(join(temp.path, "slipway.db"), { readonly: true });
  return {
    directory: temp,
    clock,
    store,
    reader,
    async [Symbol.asyncDispose]() {
      reader.close();
      await store.close();
      temp[Symbol.dispose]();
    },
  };
};

testInProcess("[AU-4] records command-line actions without a user, and says how they were performed", async () => {
  await using world = openWorld();
  const { directory, clock, store, reader } = world;
  await prepareIdentity(
    { store, clock, passwords: new Passwords(clock) },
    testConfig(directory.path, { env: WITHOUT_ADMIN }),
  );
  const accounts = new MachineAccounts(store, clock);
  await accounts.setUp({ username: "root", email: "root@example.com", password: "correct-horse-battery" });
  await accounts.create({ username: "ann", email: "ann@example.com", password: "correct-horse-battery", roles: [] });
  await accounts.setSuspended("ann", true);
  await accounts.setPassword("ann", "another-long-Secret");
  const created = await accounts.createToken("root", { name: "ci" });
  await accounts.revokeToken(created.id);
  const rows = reader.query("select action, resource_type, resource_target from audit_logs order by key").values();
  expect(rows).toEqual([
    ["create", "user", "root"],
    ["create", "user", "ann"],
    ["write", "user", "ann"],
    ["write", "user", "ann"],
    ["create", "api_key", "ci"],
    ["delete", "api_key", "ci"],
  ]);
  const originQuery =
    "select distinct user_id, ip, user_agent, json_extract(additional_fields, '$.by') from audit_logs";
  expect(reader.query(originQuery).values()).toEqual([[null, null, "slipway", "command line"]]);
  const allText = JSON.stringify(reader.query("select * from audit_logs").all());
  for (const secret of ["correct-horse", "another-long", "$argon2", created.token.slice(11)])
    expect(allText).not.toContain(secret);
});

testInProcess(
  "[AU-13] exports page by page as the client reads, and stops when the client's token is revoked",
  async () => {
    await using world = openWorld();
    const { directory, clock, store } = world;
    await prepareIdentity(
      { store, clock, passwords: new Passwords(clock) },
      testConfig(directory.path, { env: WITHOUT_ADMIN }),
    );
    const accounts = new MachineAccounts(store, clock);
    await accounts.setUp({ username: "root", email: "root@example.com", password: "correct-horse-battery" });
    const { id: key_id } = await accounts.createToken("root", { name: "export" });
    const entries = Array.from({ length: 1198 }, (_, i) =>
      insertAudit({ now: clock.now() + (i % 3), action: "write", resource_type: "organization", target: `${i}` }),
    );
    await store.commit(entries);
    let pages = 0;
    const scan = <T>(query: Query<T>): Promise<T[]> => {
      // Counts only the query that selects a page of entries, not the one that loads them.
      if (query.report === "audit") pages += 1;
      return store.scan(query);
    };
    const countingStore = { get: store.get.bind(store), scan };
    const caller = { key_id, roles: ["owner"], scopes: ["all"] } as unknown as UserCaller;
    const deps = { store: countingStore as unknown as Store, clock, draining: false };
    const ids = new Set<string>();
    const times: string[] = [];
    for (const line of (await new Response(exportAudit(deps, {}, caller)).text()).trimEnd().split("\n")) {
      const { id, time } = JSON.parse(line) as { id: string; time: string };
      ids.add(id);
      times.push(time);
    }
    expect([ids.size, pages]).toEqual([1200, 5]);
    expect(times).toEqual([...times].sort().reverse());
    pages = 0;
    const reader = exportAudit(deps, {}, caller).getReader();
    expect((await reader.read()).done).toBe(false);
    expect(pages).toBe(1);
    await accounts.revokeToken(key_id);
    expect(await reader.read().catch((error: Error) => error.message)).toBe("The session has ended.");
  },
);

testInProcess(
  "[AU-14] deletes old entries by kind, hourly and in batches, and keeps kinds without a limit",
  async () => {
    await using world = openWorld();
    const { clock, store, reader } = world;
    const retention = auditRetention({ store, clock });
    const now = clock.now();
    const createEntry = (
      ageDays: number,
      action: "login" | "create" | "write",
      resource_type: "api_key" | "user" | "workspace",
    ) => insertAudit({ now: now - ageDays * DAY, action, resource_type, target: `${ageDays}` });
    const logins = Array.from({ length: 450 }, (_, i) => createEntry(40 + i / 1000, "login", "api_key"));
    await store.commit([
      ...logins,
      createEntry(29, "login", "api_key"),
      createEntry(40, "create", "api_key"),
      createEntry(400, "create", "api_key"),
      createEntry(4000, "write", "workspace"),
      createEntry(400, "write", "user"),
      createEntry(300, "write", "user"),
    ]);
    const listEntries = () =>
      reader.query("select resource_type, resource_target from audit_logs order by time").values();
    const runSweep = async (): Promise<void> => {
      clock.advance(3_600_001);
      retention.sweep();
      await retention.whenIdle();
    };
    await runSweep();
    expect(listEntries()).toHaveLength(456);
    await store.commit([upsertAuditRetention({ days: 365, sign_in_days: 30, kinds: { workspace: 0 } })]);
    retention.sweep();
    await retention.whenIdle();
    expect(listEntries()).toHaveLength(456);
    await runSweep();
    expect(listEntries()).toEqual([
      ["workspace", "4000"],
      ["user", "300"],
      ["api_key", "40"],
      ["api_key", "29"],
    ]);
    await retention.stop();
  },
);
