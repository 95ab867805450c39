// Records what a writing process has sent and what was acknowledged, and compares that with a database (RELIABILITY section 4, points 1 to
// 4 and 9, for the store alone).
import { openDatabase } from "#db/engine/open.ts";

type SentBatch = {
  client: number;
  n: number;
  first: number;
  count: number;
  outcome: "unknown" | "acknowledged" | "refused";
};

/** Rejections that guarantee that nothing was written. */
const DEFINITE = new Set(["constraint", "stale", "overloaded", "unreachable", "moved", "closed", "full"]);

export class Oracle {
  readonly #sent = new Map<string, SentBatch>();
  readonly #findings: string[] = [];
  acknowledged = 0;
  refused = 0;
  epoch = 0;
  fatal = "";

  /** Processes one line of the writing process. */
  handleLine(line: string): void {
    const [word, client, n, first = "", count] = line.split(" ");
    const key = `${client}:${n}`;
    if (word === "open") this.epoch = Number(client);
    else if (word === "fatal") this.fatal = line.slice(6);
    else if (word === "s") {
      if (this.#sent.has(key)) this.#findings.push(`${key} was sent twice`);
      const sent = { client: Number(client), n: Number(n), first: Number(first), count: Number(count) };
      this.#sent.set(key, { ...sent, outcome: "unknown" });
    } else if (word === "a") {
      this.acknowledged += 1;
      (this.#sent.get(key) as SentBatch).outcome = "acknowledged";
    } else if (word === "r") {
      this.refused += 1;
      const sent = this.#sent.get(key);
      if (sent && DEFINITE.has(first)) sent.outcome = "refused";
    }
  }

  /** Returns the number after each client's last batch. */
  next(clients: number): number[] {
    const next = Array.from({ length: clients }, () => 1);
    for (const { client, n } of this.#sent.values()) next[client] = Math.max(next[client] ?? 1, n + 1);
    return next;
  }

  /** Opens the directory like a server. Returns the problems; the list is empty if all is well. */
  check(directory: string): string[] {
    const { db, unlock } = openDatabase(directory, { cacheMb: 8, now: 0 });
    try {
      const problems = [...this.#findings];
      const integrity = String(db.query("pragma integrity_check").values()[0]?.[0]);
      if (integrity !== "ok") problems.push(`integrity: ${integrity}`);
      if (db.query("pragma foreign_key_check").all().length > 0) problems.push("foreign keys are broken");
      const rows = db.query("select id, output from agent_logs order by id").values() as [number, string][];
      const marks = new Map(db.query("select key, value from settings").values() as [string, string][]);
      problems.push(...this.#checkRows(rows, marks));
      problems.push(...this.#checkIds(Number(db.query("select next from sequences").values()[0]?.[0] ?? 0)));
      const epoch = Number(db.query("select value from epoch").values()[0]?.[0] ?? 0);
      if (epoch < this.epoch) problems.push(`epoch ${epoch} is older than ${this.epoch}`);
      return problems;
    } finally {
      db.close();
      unlock();
    }
  }

  #checkRows(rows: [number, string][], marks: Map<string, string>): string[] {
    const problems: string[] = [];
    const idsByBatch = new Map<string, number[]>();
    const newest = new Map<number, number>();
    for (const [id, output] of rows) {
      const [, client, n, i] = /^c(\d+) n(\d+) i(\d+) x*$/.exec(output) ?? [];
      if (client === undefined) {
        problems.push(`an uncommitted row is visible: ${output.slice(0, 40)}`);
        continue;
      }
      const ids = idsByBatch.get(`${client}:${n}`) ?? [];
      if (ids.length !== Number(i)) problems.push(`${client}:${n} has row ${i} after ${ids.length} rows`);
      idsByBatch.set(`${client}:${n}`, [...ids, id]);
      if (Number(n) < (newest.get(Number(client)) ?? 0)) problems.push(`${client}:${n} comes after a later batch`);
      newest.set(Number(client), Number(n));
    }
    for (const [key, { client, n, first, count, outcome }] of this.#sent) {
      const ids = idsByBatch.get(key);
      idsByBatch.delete(key);
      if (!ids && outcome === "acknowledged") problems.push(`LOST ${key}, which was acknowledged`);
      if (ids && outcome === "refused") problems.push(`${key} was refused, but exists`);
      if (ids && (ids[0] !== first || ids.length !== count)) problems.push(`${key} is incomplete: ${ids}`);
      if (ids && Number(marks.get(`client-${client}`)) < n) problems.push(`${key} exists without its mark`);
    }
    for (const key of idsByBatch.keys()) problems.push(`${key} exists, but was never sent`);
    for (const [client, n] of newest) {
      if (marks.get(`client-${client}`) !== `${n}`) problems.push(`the mark of client ${client} is not at ${n}`);
    }
    return problems;
  }

  /** Checks that no ID was or will be used twice, by any process. */
  #checkIds(next: number): string[] {
    const problems: string[] = [];
    let nextFreeId = 0;
    for (const { first, count } of [...this.#sent.values()].sort((a, b) => a.first - b.first)) {
      if (first < nextFreeId) problems.push(`ID ${first} was reserved twice`);
      nextFreeId = first + count;
    }
    // A reservation is on disk before any of its IDs is used.
    if (nextFreeId > next) problems.push(`ID ${nextFreeId - 1} was used but is not reserved`);
    return problems;
  }
}
