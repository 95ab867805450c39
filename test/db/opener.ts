// A process that opens the given data directory, reports the result, and keeps it open until its input ends.
import { openDatabase } from "#db/engine/open.ts";

try {
  const { db, unlock } = openDatabase(process.argv[2] ?? "", { cacheMb: 8, now: 1_700_000_000_000 });
  process.stdout.write("opened\n");
  for await (const _ of process.stdin);
  db.close();
  unlock();
} catch (error) {
  process.stdout.write(`${(error as Error).name}: ${(error as Error).message}\n`);
}
