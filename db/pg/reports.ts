// Reports on PostgreSQL. Usage figures use the same code as on SQLite. Searches of the audit log use a single query, because each index
// lookup would be a round trip and PostgreSQL's planner combines indexes itself.
import type { ReservedSQL, SQL } from "bun";
import PQueue from "p-queue";
import type { ReadRows } from "../engine/rows.ts";
import type { ReportName, Value } from "../engine/sql.ts";
import { type AuditFound, type AuditSearch, MAX_AUDIT_COUNT } from "../reports/audit/find.ts";
import { toConditions } from "../reports/audit/plan.ts";
import { PartCache } from "../reports/usage/parts.ts";
import { REPORTS } from "../reports/usage/reports.ts";
import { queryText } from "./bind.ts";
import { toStorableValue, toStoredValue } from "./stored-value.ts";

/** Maximum concurrent reports; others wait. */
const MAX_CONCURRENT = 2;

export class PgReports {
  readonly #cache = new PartCache();
  readonly #queue = new PQueue({ concurrency: MAX_CONCURRENT });

  /** Returns the report as JSON text, read from one snapshot. */
  run(readers: SQL, name: ReportName, args: string): Promise<string> {
    return this.#queue.add(async () => {
      const connection = await readers.reserve();
      try {
        return await this.#readSnapshot(connection, name, args);
      } finally {
        connection.release();
      }
    });
  }

  async #readSnapshot(connection: ReservedSQL, name: ReportName, args: string): Promise<string> {
    await connection.unsafe("begin isolation level repeatable read read only");
    try {
      const read = createRowReader(connection);
      if (name === "audit") return JSON.stringify(await findAuditIn(read, JSON.parse(args)));
      return await REPORTS[name](read, JSON.parse(args), this.#cache);
    } finally {
      await connection.unsafe("rollback");
    }
  }
}

const createRowReader =
  (connection: ReservedSQL): ReadRows =>
  async (sql, params = []) => {
    const rows = await connection.unsafe(queryText(sql), params.map(toStorableValue) as never[]).values();
    return (rows as unknown as unknown[][]).map((row) => row.map(toStoredValue));
  };

const findAuditIn = async (read: ReadRows, search: AuditSearch): Promise<AuditFound> => {
  const { filter, limit, offset = 0, cursor, counted = false } = search;
  const conditions: string[] = ["true"];
  const params: Value[] = [];
  const addCondition = (text: string, ...values: readonly Value[]): void => {
    conditions.push(text);
    params.push(...values);
  };
  for (const { column, values } of toConditions(filter, [])) {
    if (values.length === 0) addCondition("false");
    else addCondition(`${column} in (${values.map(() => "?").join(", ")})`, ...values);
  }
  if (filter.from !== undefined) addCondition("time >= ?", filter.from);
  if (filter.to !== undefined) addCondition("time <= ?", filter.to);
  const maxCount = MAX_AUDIT_COUNT + 1;
  const selectMatches = `select 1 from audit_logs where ${conditions.join(" and ")} limit ${maxCount}`;
  const count = counted ? Number((await read(`select count(*) from (${selectMatches})`, params))[0]?.[0]) : 0;
  if (cursor) addCondition("(time, key) < (?, ?)", cursor.time, cursor.key);
  const selectPage = `select key from audit_logs where ${conditions.join(" and ")} order by time desc, key desc limit ? offset ?`;
  const rows = await read(selectPage, [...params, limit, offset]);
  return { keys: rows.map(([key]) => key as number), count };
};
