// Exports the audit log as a file with one JSON object or CSV row per line, newest first. Pages are read with backpressure, so neither a
// long log nor a slow client costs memory (rule AU-13). The export ends when its reader loses access.
import { AppError } from "#base/errors.ts";
import type { AuditFilter } from "#db/reports/audit/plan.ts";
import type { AuditCursor } from "#db/reports/audit/runs.ts";
import { listAudit } from "#db/reports/audit/search.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { presentEntries } from "#domain/audit/visible-entries.ts";
import { listScopes } from "#domain/users/keys.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";

// Formats audit entries as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is prefixed with an apostrophe. Pure.
const COLUMNS: readonly (readonly [string, (entry: AuditLog) => unknown])[] = [
  ["time", ({ time }) => time],
  ["user", ({ user }) => user?.username ?? ""],
  ["action", ({ action }) => action],
  ["resource_type", ({ resource_type }) => resource_type],
  ["resource_target", ({ resource_target }) => resource_target],
  ["resource_id", ({ resource_id }) => resource_id],
  ["organization", ({ organization }) => organization?.name ?? ""],
  ["status_code", ({ status_code }) => status_code],
  ["ip", ({ ip }) => ip ?? ""],
  ["user_agent", ({ user_agent }) => user_agent],
  ["request_id", ({ request_id }) => request_id],
  ["diff", ({ diff }) => (Object.keys(diff).length === 0 ? "" : JSON.stringify(diff))],
  ["id", ({ id }) => id],
];

const formatCell = (value: unknown): string => {
  const text = String(value);
  const escaped = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
};

const CSV_HEAD = `${COLUMNS.map(([name]) => name).join(",")}\r\n`;

const formatCsvLine = (entry: AuditLog): string =>
  `${COLUMNS.map(([, read]) => formatCell(read(entry))).join(",")}\r\n`;

const PAGE_SIZE = 250;

export const EXPORT_FORMATS = ["ndjson", "csv"] as const;
export type Format = (typeof EXPORT_FORMATS)[number];

const FORMATS: Readonly<Record<Format, { readonly head: string; readonly formatLine: (entry: AuditLog) => string }>> = {
  ndjson: { head: "", formatLine: (entry) => `${JSON.stringify(entry)}\n` },
  csv: { head: CSV_HEAD, formatLine: formatCsvLine },
};

type Deps = Pick<ApiContext, "store" | "clock" | "draining">;

/** Exports the entries that match now. Entries written during the export are newer and not included. */
export const exportAudit = (
  ctx: Deps,
  filter: AuditFilter,
  caller: UserCaller,
  format: Format = "ndjson",
): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder();
  const { head, formatLine } = FORMATS[format];
  let hasSentHead = head === "";
  let cursor: AuditCursor | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        if (!(await canContinue(ctx, caller))) {
          controller.error(new AppError("unauthenticated", "The session has ended."));
          return;
        }
        const { rows } = await listAudit(ctx.store, { filter, limit: PAGE_SIZE, ...(cursor && { cursor }) });
        const last = rows.at(-1)?.entry;
        if (last) {
          cursor = { time: last.time, key: last.key };
          const text = (await presentEntries(ctx, caller, rows)).map(formatLine).join("");
          controller.enqueue(encoder.encode(hasSentHead ? text : head + text));
          hasSentHead = true;
        }
        if (rows.length < PAGE_SIZE && !hasSentHead) controller.enqueue(encoder.encode(head));
        if (rows.length < PAGE_SIZE) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
};

/** Returns whether the key still exists, its user is active, and their roles are the ones the filter was made for. */
const canContinue = async ({ store, clock, draining }: Deps, caller: UserCaller): Promise<boolean> => {
  const key = await store.get(findKeyWithUser({ id: caller.key_id }));
  if (draining || !key || key.deleted || key.status === "suspended" || key.expires_at <= clock.now()) return false;
  if (listScopes(key).join() !== caller.scopes.join()) return false;
  return caller.roles.every((role) => key.roles.includes(role));
};
