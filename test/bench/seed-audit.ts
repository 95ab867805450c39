// A long audit log, put straight into a store: what an organization of some hundred people leaves in years. For the row about audit.
import { audit_logs } from "#db/schema/audit.ts";
import { insertInto } from "#db/sql.ts";
import type { Store } from "#db/store.ts";
import { insertUser } from "#db/users.ts";
import type { AuditAction, ResourceType } from "#schema/audit.ts";

const insert = insertInto(audit_logs);
const STEP = 450;
const AT_ONCE = 8;
const YEARS_MS = 3 * 366 * 86_400_000;

/** Of a hundred entries: what they are. The last is rare: once in 5,000. */
const KINDS: readonly [number, AuditAction, ResourceType][] = [
  [30, "start", "workspace_build"],
  [55, "stop", "workspace_build"],
  [70, "login", "api_key"],
  [80, "create", "api_key"],
  [88, "write", "workspace"],
  [93, "create", "chat"],
  [97, "create", "workspace"],
  [99, "write", "template"],
  [100, "delete", "user"],
];

const id = (kind: string, n: number): string => `${kind}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;

export type SeededAudit = { readonly people: readonly string[]; readonly organizations: readonly string[] };

/** Entries in the order of time, ending at `now`; the thing, the person and the organization of each differ. */
export const seedAudit = async (store: Store, now: number, entries: number): Promise<SeededAudit> => {
  const people = Array.from({ length: 500 }, (_, n) => id("aaaaaaaa", n));
  const organizations = Array.from({ length: 12 }, (_, n) => id("bbbbbbbb", n));
  const at = { created_at: now - YEARS_MS, updated_at: now - YEARS_MS };
  await store.commit(
    people.map((person, n) =>
      insertUser({
        ...{ id: person, email: `p${n}@example.com`, username: `person-${n}`, status: "active", login_type: "none" },
        ...at,
      }),
    ),
  );
  const rowOf = (n: number): typeof audit_logs.$inferInsert => {
    const lot = (n * 7919) % 100;
    const [, action, resource_type] = KINDS.find(([below]) => lot < below) ?? [0, "write", "user"];
    const thing = (n * 104_729) % 40_000;
    const isBuild = resource_type === "workspace_build";
    return {
      ...{ id: id("cccccccc", n), time: now - YEARS_MS + Math.floor((n / entries) * YEARS_MS), action, resource_type },
      ...{ user_id: people[(n * 31) % people.length], organization_id: organizations[(n * 17) % organizations.length] },
      ...{ ip: "192.0.2.7", user_agent: "Mozilla/5.0 (X11; Linux x86_64)", request_id: id("dddddddd", n) },
      ...{ resource_id: id("eeeeeeee", thing), resource_target: `thing-${thing}`, status_code: 200 },
      workspace_id: isBuild || resource_type === "workspace" ? id("eeeeeeee", thing) : null,
      build_reason: isBuild ? (n % 3 === 0 ? "autostart" : "initiator") : "",
      diff: { name: { old: "before", new: `thing-${thing}`, secret: false } },
      additional_fields: isBuild ? { workspace_name: `thing-${thing}`, build_number: String(n % 90) } : {},
    };
  };
  for (let from = 0; from < entries; from += STEP * AT_ONCE) {
    const batches = Array.from({ length: AT_ONCE }, (_, lane) => {
      const first = from + lane * STEP;
      return Array.from({ length: Math.max(0, Math.min(STEP, entries - first)) }, (_, i) => rowOf(first + i));
    });
    await Promise.all(batches.filter((rows) => rows.length > 0).map((rows) => store.commit([insert(rows)])));
  }
  return { people, organizations };
};
