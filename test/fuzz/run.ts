// `bun run fuzz:api [--cases 20000] [--seed 1]`: fuzzes a temporary server in this process, with half of the cases as administrator and
// half as member, prints the findings, and writes the result to test/results/fuzz.md. Exits with 1 if it finds a problem.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startTestServer } from "#test/support/server.ts";
import { fuzzOperations } from "./api-fuzz.ts";
import { fetchDocument, listOperations } from "./operations.ts";

const RESULTS = join(import.meta.dir, "../results/fuzz.md");
const [BEGIN, END] = ["<!-- result: written by `bun run fuzz:api` -->", "<!-- end of result -->"];

const { values } = parseArgs({
  options: { cases: { type: "string", default: "20000" }, seed: { type: "string" } },
});
const cases = Number(values.cases);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isInteger(cases) || cases < 1 || !Number.isInteger(seed))
  throw new Error("--cases must be a positive whole number, and --seed a whole number");

const printLine = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const countOperations = async (): Promise<number> => {
  await using server = await startTestServer();
  return listOperations(await fetchDocument(server.url)).length - 1;
};

const rounds = Math.ceil(cases / 2 / (await countOperations()));
const results: string[] = [];
let isClean = true;
for (const who of ["administrator", "member"] as const) {
  const startedAt = performance.now();
  const result = await fuzzOperations({ rounds, seed, who, log: printLine }).catch((error) => {
    isClean = false;
    return `**failed** as ${who}: ${String(error.message).split("\n")[0]}`;
  });
  results.push(`- ${result} (${Math.round((performance.now() - startedAt) / 1000)} s)`);
  printLine(results.at(-1) as string);
}

const today = new Date().toISOString().slice(0, 10);
const text = readFileSync(RESULTS, "utf8");
const [start, end] = [text.indexOf(BEGIN), text.indexOf(END)];
if (start < 0 || end < start) throw new Error(`${RESULTS} does not contain the result markers`);
const block = `${BEGIN}\nLast run, ${today}, Bun ${Bun.version}:\n\n${results.join("\n")}\n`;
writeFileSync(RESULTS, `${text.slice(0, start)}${block}${text.slice(end)}`);
process.exit(isClean ? 0 : 1);
