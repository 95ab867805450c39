// The program as it was one step of the database ago: this source without the newest migration. Nothing has been released yet, so there
// is no older binary to keep; this one refuses a newer data directory as such a binary would.
import { MIGRATIONS } from "#db/engine/migrations.ts";

const steps = MIGRATIONS as { name: string; sql: string }[];
steps.pop();

await import("../../src/main.ts");
