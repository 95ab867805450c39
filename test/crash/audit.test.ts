// A change and its audit log entry are atomic: whenever the process is killed, both exist or neither exists, and acknowledged changes
// exist.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { testInProcess } from "#test/support/in-process.ts";
import { tempDirectory } from "#test/support/server.ts";

const ROUNDS = 3;
const MIN_CHANGES = 400;

testInProcess(
  "[AU-1] after repeated kills, there are as many entries as changes, and no acknowledged change is missing",
  async () => {
    using temp = tempDirectory();
    const acknowledged: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const child = Bun.spawn(["bun", join(import.meta.dir, "audit-child.ts"), temp.path, String(round)], {
        stdout: "pipe",
        stderr: "inherit",
      });
      let text = "";
      for await (const chunk of child.stdout.pipeThrough(
        new TextDecoderStream() as never,
      ) as unknown as AsyncIterable<string>) {
        text += chunk;
        if (text.length > MIN_CHANGES * 12) child.kill("SIGKILL");
      }
      await child.exited;
      acknowledged.push(...text.slice(0, text.lastIndexOf("\n")).split("\n"));
    }
    using database = new Database(join(temp.path, "slipway.db"));
    const queryTexts = (sql: string) => database.query(sql).values().flat() as string[];
    const changes = queryTexts("select key from settings where key like 'probe/%' order by 1");
    const entries = queryTexts("select resource_target from audit_logs order by 1");
    expect(entries).toEqual(changes);
    const stored = new Set(changes);
    expect(acknowledged.filter((key) => !stored.has(key))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(ROUNDS * 100);
  },
);
