// Runs lists, searches and reports on a separate read-only connection, so that none of them blocks the event loop. Each
// result has a limited number of rows. Runs one query at a time.
import { Database } from "bun:sqlite";
import { auditReport } from "../reports/audit/find.ts";
import { PartCache } from "../reports/usage/parts.ts";
import { REPORTS } from "../reports/usage/reports.ts";
import { makeRowReader } from "./rows.ts";
import type { Query } from "./sql.ts";

declare const self: Worker;

type ReportName = NonNullable<Query<unknown>["report"]>;
type WorkerMessage = {
  open?: string;
  close?: true;
  sql?: string;
  params?: unknown[];
  limit?: number;
  report?: ReportName;
};

/** Searches read the same pages of a large index repeatedly; SQLite's default of 2 MiB halves their speed. Filled by reads. */
const CACHE_KIB = 16 * 1024;

let db: Database | undefined;
let partCache: PartCache | undefined;
let file = "";

/** Returns the connection. Opens it at the first query, so that a failure is reported to that query instead of ending the Worker. */
const openConnection = (): Database => {
  if (!db) {
    db = new Database(file, { readonly: true });
    db.run("pragma busy_timeout=1000");
    db.run("pragma query_only=on");
    db.run(`pragma cache_size=-${CACHE_KIB}`);
  }
  return db;
};

/** Returns false while something is still using the connection. */
const close = (): boolean => {
  partCache = undefined;
  try {
    db?.close(true);
    db = undefined;
    return true;
  } catch {
    return false;
  }
};

/** Runs a report, which reads one snapshot. The report awaits only its reads, so no other query runs in the meantime. */
const runReport = async (name: ReportName, args: string): Promise<string> => {
  const db = openConnection();
  db.run("begin");
  try {
    if (name === "audit") return auditReport(db, JSON.parse(args));
    partCache ??= new PartCache();
    return await REPORTS[name](makeRowReader(db), JSON.parse(args), partCache);
  } finally {
    db.run("commit");
  }
};

self.onmessage = async ({ data }: MessageEvent<WorkerMessage>) => {
  if (data.open) {
    file = data.open;
    return;
  }
  if (data.close) {
    self.postMessage({ closed: close() });
    return;
  }
  const { sql = "", params = [], limit = 0, report } = data;
  try {
    if (report) {
      self.postMessage({ rows: [[await runReport(report, String(params[0]))]] });
      return;
    }
    // The limit is part of the query, so that excess rows are never loaded.
    const rows = openConnection()
      .query(`select * from (${sql}) limit ${limit + 1}`)
      .values(...(params as never[]));
    if (rows.length > limit) self.postMessage({ error: `more than ${limit} rows` });
    else self.postMessage({ rows });
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    self.postMessage({ error: message, code });
  }
};
