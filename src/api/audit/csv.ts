// Formats audit entries as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is prefixed with an apostrophe. Pure.
import type { AuditLog } from "#schema/audit.ts";

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

const cell = (value: unknown): string => {
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

export const csvHead = `${COLUMNS.map(([name]) => name).join(",")}\r\n`;

export const csvLine = (entry: AuditLog): string => `${COLUMNS.map(([, of]) => cell(of(entry))).join(",")}\r\n`;
