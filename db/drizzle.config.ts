// Drizzle Kit writes the SQL of a new migration from the difference between db/schema and the newest snapshot. It runs nothing.
import { defineConfig } from "drizzle-kit";

export default defineConfig({ dialect: "sqlite", schema: "./db/schema/index.ts", out: "./db/migrations" });
