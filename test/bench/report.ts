// Turns the rounds of every row into medians, ratios and verdicts: one Markdown text for the terminal and for the results in the README.
import type { Figures, Medians, Row, Verdict } from "./row.ts";
import type { SideName } from "./sides.ts";

/** All rounds of one row, per side. */
export type Measurements = Partial<Record<SideName, Figures[]>>;

export interface RowResult {
  row: Row;
  rounds: Measurements;
  /** The day of the measurement, if the table has rows of several days. */
  date?: string;
}

/** Returns the median; for an even count, the mean of the two middle values. NaN if empty. */
export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Returns the median of each figure on each side. */
export function computeMedians(rounds: Measurements): Medians {
  const medianFigures = (figures: Figures[] | undefined): Figures | undefined => {
    const names = Object.keys(figures?.[0] ?? {});
    return figures?.length
      ? Object.fromEntries(names.map((name) => [name, median(figures.map((f) => f[name] ?? Number.NaN))]))
      : undefined;
  };
  return { floor: medianFigures(rounds.floor), product: medianFigures(rounds.product) };
}

/** Formats a number: three significant digits below 1,000, an integer with separators above. */
function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

/** Returns true if a verdict's target is reached; undefined if it could not be measured. */
function isReached(verdict: Verdict, medians: Medians): boolean | undefined {
  const value = verdict.value(medians);
  if (value === undefined || Number.isNaN(value)) return undefined;
  const bound = typeof verdict.bound === "number" ? verdict.bound : verdict.bound(medians);
  return verdict.better === "higher" ? value >= bound : value <= bound;
}

/** Returns the table of targets: one line per verdict, with a date column if a result has one. */
export function formatVerdictTable(results: RowResult[]): string {
  const isDated = results.some(({ date }) => date !== undefined);
  const lines = isDated
    ? ["| row | what | measured | target | reached | on |", "|---|---|---|---|---|---|"]
    : ["| row | what | measured | target | reached |", "|---|---|---|---|---|"];
  for (const { row, rounds, date } of results) {
    const medians = computeMedians(rounds);
    for (const verdict of row.verdicts) {
      const value = verdict.value(medians);
      const ok = isReached(verdict, medians);
      const unit = verdict.unit === "ratio" || verdict.unit === "count" ? "" : ` ${verdict.unit}`;
      const measured = value === undefined ? "not measured" : `${formatNumber(value)}${unit}`;
      const cells = [row.name, verdict.what, measured, verdict.target, ok === undefined ? "-" : ok ? "yes" : "NO"];
      lines.push(`| ${[...cells, ...(isDated ? [date ?? ""] : [])].join(" | ")} |`);
    }
  }
  return lines.join("\n");
}

/** Returns the underlying figures: the median (lowest-highest) of each side. */
export function formatFigureTables(results: RowResult[]): string {
  return results
    .map(({ row, rounds }) => {
      const count = Math.max(rounds.floor?.length ?? 0, rounds.product?.length ?? 0);
      const lines = [
        `**${row.name}**: ${row.title} (${count} ${count === 1 ? "round" : "rounds"})`,
        "",
        "| | floor | product |",
        "|---|---|---|",
      ];
      for (const [name, label] of Object.entries(row.figures)) {
        const cell = (side: SideName): string => {
          const values = (rounds[side] ?? []).map((figures) => figures[name] ?? Number.NaN);
          if (!values.length) return "-";
          const spread =
            values.length > 1 ? ` (${formatNumber(Math.min(...values))}-${formatNumber(Math.max(...values))})` : "";
          return formatNumber(median(values)) + spread;
        };
        lines.push(`| ${label} | ${cell("floor")} | ${cell("product")} |`);
      }
      return lines.join("\n");
    })
    .join("\n\n");
}

const blockStart = "<!-- results: written by `bun run bench` -->";
const blockEnd = "<!-- end of results -->";

/** Returns the README with its result block replaced. Throws if the markers are missing. */
export function replaceResults(readme: string, block: string): string {
  const start = readme.indexOf(blockStart);
  const end = readme.indexOf(blockEnd);
  if (start < 0 || end < start) throw new Error("test/bench/README.md has lost the markers of its result block");
  return `${readme.slice(0, start)}${blockStart}\n\n${block}\n\n${readme.slice(end)}`;
}
