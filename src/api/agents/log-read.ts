// The plain response of `GET {agent}/logs`: stored lines as one JSON array or as text, read and sent page by page.
import { toRfc3339 } from "#base/clock.ts";
import type { AgentLogRow } from "#db/agents/logs.ts";
import type { AgentAccessRow } from "#domain/agents/find.ts";
import { DEFAULT_SOURCE } from "#schema/agents/log-source.ts";
import { LOG_LEVELS } from "#schema/log-level.ts";
import { type LogPages, PAGE_LINES } from "./log-pages.ts";
import type { LogRequest } from "./log-query.ts";

/** Maximum lines in one response; the caller continues with `after`. */
const MAX_LINES = 50_000;
const MAX_CHARS = 16 * 1024 * 1024;

/** Returns the stored lines between the cursors. Upstream clients get text without Slipway's colors. */
export const readLogs = async (
  pages: LogPages,
  agent: AgentAccessRow,
  request: LogRequest,
  isPlain: boolean,
): Promise<Response> => {
  const parts: string[] = [];
  const formatRow =
    request.format === "text" ? makeFormatter(await pages.loadSources(agent.agent_id), agent, isPlain) : undefined;
  let after = request.after;
  let charCount = 0;
  for (let lineCount = 0; lineCount < MAX_LINES && charCount < MAX_CHARS; lineCount += PAGE_LINES) {
    const rows = await pages.read(agent.agent_key, after, request.before);
    for (const { output } of rows) charCount += output.length;
    if (formatRow) parts.push(...rows.map(formatRow));
    else if (rows.length > 0) parts.push(JSON.stringify(await pages.toLogs(agent.agent_id, rows)).slice(1, -1));
    if (rows.length < PAGE_LINES) break;
    after = (rows.at(-1) as AgentLogRow).id;
  }
  return formatRow
    ? new Response(parts.join(""), { headers: { "content-type": "text/plain; charset=utf-8" } })
    : new Response(`[${parts.join(",")}]`, { headers: { "content-type": "application/json; charset=utf-8" } });
};

/** ANSI colors of the levels, dim to red. */
const COLORS = ["\x1b[90m", "\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[31m"];
const RESET = "\x1b[0m";

const makeFormatter =
  (
    sources: ReadonlyMap<number, { display_name: string }>,
    agent: AgentAccessRow,
    isPlain: boolean,
  ): ((row: AgentLogRow) => string) =>
  ({ created_at, level, source, output }) => {
    const name = LOG_LEVELS[level] as string;
    const levelText = isPlain ? name : `${COLORS[level]}${name}${RESET}`;
    const sourceText = `agent.${agent.agent_name}|${sources.get(source)?.display_name ?? DEFAULT_SOURCE.display_name}`;
    return `${toRfc3339(created_at)} [${levelText}] [${sourceText}] ${output}\n`;
  };
