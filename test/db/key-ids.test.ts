// The step that gives provisioner keys UUIDs, on a database of the release before it.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { isUuid } from "#base/ids.ts";
import { migrate } from "#db/engine/migrate.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";
import { temporaryDirectory } from "./deployments.ts";

const LIVE = "AbCdEf0123";
const GONE = "ZyXwVu9876";

test("[ST-24] provisioner keys of an older database get UUIDs, in their daemons and in the audit log, also keys that are gone", () => {
  using place = temporaryDirectory();
  const db = new Database(join(place.path, "slipway.db"), { create: true });
  const before = MIGRATIONS.slice(
    0,
    MIGRATIONS.findIndex(({ name }) => name === "0002_provisioner_key_ids"),
  );
  migrate(db, { directory: place.path, now: 1, migrations: before });
  db.run(
    "insert into organizations (id, name, display_name, description, icon, is_default, created_at, updated_at) values ('o', 'o', '', '', '', 1, 1, 1)",
  );
  db.run(`insert into provisioner_keys (id, organization_id, name, secret_hash, tags, created_by, created_at)
    values ('${LIVE}', 'o', 'eu', 'hash', '{}', 'u', 1)`);
  db.run(`insert into provisioner_daemons values ('d', 'o', '${LIVE}', 'w1', '', '[]', '{}', 1, 1, 1)`);
  db.run(`insert into provisioner_daemons values ('e', 'o', '${GONE}', 'w2', '', '[]', '{}', 1, 1, 1)`);
  const entry = db.query(`insert into audit_logs
    (id, time, user_agent, action, resource_type, resource_id, resource_target, diff, additional_fields, status_code, request_id)
    values (?, 1, '', ?, ?, ?, 'eu', ?, '{}', 201, '')`);
  const made = (id: string) => JSON.stringify({ id: { old: "", new: id, secret: false } });
  entry.run("1", "create", "provisioner_key", LIVE, made(LIVE));
  entry.run("2", "create", "provisioner_key", GONE, made(GONE));
  entry.run("3", "delete", "provisioner_key", GONE, JSON.stringify({ id: { old: GONE, new: "", secret: false } }));
  entry.run("4", "delete", "provisioner_key", GONE, "{}");
  entry.run("5", "create", "template", GONE, made(GONE));

  migrate(db, { directory: place.path, now: 2 });
  const key = db.query("select id, prefix from provisioner_keys").get() as { id: string; prefix: string };
  expect(isUuid(key.id)).toBe(true);
  expect(key).toEqual({ id: key.id.toLowerCase(), prefix: LIVE });
  const rows = db.query("select resource_id, diff from audit_logs order by id").all() as {
    resource_id: string;
    diff: string;
  }[];
  const gone = rows[1]?.resource_id ?? "";
  expect(isUuid(gone)).toBe(true);
  expect(gone).not.toBe(key.id);
  expect(rows.map(({ resource_id }) => resource_id)).toEqual([key.id, gone, gone, gone, GONE]);
  expect(rows.map(({ diff }) => JSON.parse(diff).id?.new)).toEqual([key.id, gone, "", undefined, GONE]);
  expect(JSON.parse(rows[2]?.diff ?? "").id.old).toBe(gone);
  expect(db.query("select key_id from provisioner_daemons order by id").values()).toEqual([[key.id], [gone]]);
  db.close();
});
