// The table of test/results/torture.md: the last result of each check, including those of earlier runs.

export type Result = {
  name: string;
  /** The numbers of the check in the list of forty checks. */
  numbers: string;
  rounds: number;
  seed: number;
  outcome: "passed" | "FAILED" | "skipped";
  /** The result in one line. */
  summary: string;
  seconds: number;
  date: string;
};

const START = "<!-- results: written by `bun run torture` -->";
const END = "<!-- end of results -->";

/** Returns one line of the table. */
export const formatRow = ({ name, numbers, rounds, seed, outcome, summary, seconds, date }: Result): string => {
  const text = summary.replaceAll("|", "\\|").replaceAll("\n", " ").slice(0, 300);
  return `| ${numbers} | ${name} | ${rounds} | ${seed} | ${outcome}: ${text} | ${seconds.toFixed(0)} | ${date} |`;
};

const parseName = (line: string): string => line.split(" | ")[1]?.trim() ?? "";

/** Returns the page with these results instead of older results of the same checks. Throws if the markers are missing. */
export const replaceRows = (
  page: string,
  order: readonly string[],
  results: readonly Result[],
  machine: string,
): string => {
  const tableStart = page.indexOf(START);
  const tableEnd = page.indexOf(END);
  if (tableStart < 0 || tableEnd < tableStart)
    throw new Error("test/results/torture.md has lost the markers of its results");
  const rows = new Map<string, string>();
  for (const line of page.slice(tableStart, tableEnd).split("\n"))
    if (order.includes(parseName(line))) rows.set(parseName(line), line);
  for (const result of results) rows.set(result.name, formatRow(result));
  const lines = [
    `Machine: ${machine}.`,
    "",
    "| check | name | rounds | seed | result | seconds | date |",
    "|---|---|---|---|---|---|---|",
    ...order.flatMap((name) => rows.get(name) ?? []),
  ];
  return `${page.slice(0, tableStart)}${START}\n\n${lines.join("\n")}\n\n${page.slice(tableEnd)}`;
};
