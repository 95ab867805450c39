// Routes that return the latest lines of the server log and stream new ones.
import { type Static, t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { logLevels } from "#base/config/log-levels.ts";
import { invalidField } from "#base/errors.ts";
import { requireActiveNode } from "#base/network/local-reads.ts";
import { type RecentLine, recentLog } from "#base/recent-log.ts";
import { checkServerAdmin } from "#domain/access.ts";
import { ServerLog, ServerLogLine } from "#schema/administration/server-log.ts";
import { LOG_LEVELS } from "#schema/log-level.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { openOwnersFeed } from "./feed.ts";

const tags = ["Administration"];
const MAX_LINES = 2_000;
/** Lines that arrive within this window are sent as one message. */
const BATCH_MS = 100;

const query = t.Object({
  level: t.Optional(t.String({ description: "The minimum level: trace, debug, info, warn or error." })),
  area: t.Optional(t.String({ maxLength: 64, description: "Return only lines from this part of the server." })),
  search: t.Optional(
    t.String({ maxLength: 256, description: "Return only lines that contain this text, ignoring case." }),
  ),
  after_id: t.Optional(t.Integer({ description: "Return only lines after the one with this ID." })),
});

const parseLevel = (text: string | undefined): number => {
  if (text === undefined) return 0;
  const index = LOG_LEVELS.indexOf(text as ServerLogLine["level"]);
  if (index < 0) throw invalidField("level", `must be one of ${LOG_LEVELS.join(", ")}`);
  return index;
};

const presentLine = ({ id, at, level, area, text }: RecentLine): ServerLogLine => ({
  id,
  time: toRfc3339(at),
  level: level as ServerLogLine["level"],
  area,
  text,
});

const makeFilter = ({ level, area, search }: Static<typeof query>): ((line: RecentLine) => boolean) => {
  const minLevel = parseLevel(level);
  const searchText = search?.toLowerCase();
  return (line) =>
    LOG_LEVELS.indexOf(line.level as ServerLogLine["level"]) >= minLevel &&
    (area === undefined || line.area === area) &&
    (searchText === undefined || line.text.toLowerCase().includes(searchText));
};

export const serverLog = (ctx: ApiContext) =>
  routes({ prefix: "/deployment/logs" })
    .use(callers)
    .get(
      "",
      ({ caller, query }) => {
        checkServerAdmin(caller);
        requireActiveNode();
        const lines = recentLog.listAfter(query.after_id ?? 0, MAX_LINES, makeFilter(query)).map(presentLine);
        return { level: logLevels.print(ctx.config.log_level), lines };
      },
      {
        user: true,
        query,
        response: { 200: ServerLog, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "getServerLog",
          summary: "Get the server log",
          description:
            "Returns the last 2,000 lines of this process, which are kept in memory. Values that look like secrets or email addresses are redacted.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .get(
      "/watch",
      ({ caller, query, request }) => {
        checkServerAdmin(caller);
        const matches = makeFilter(query);
        return openOwnersFeed(ctx, caller, request, (feed) => {
          let lastId = query.after_id ?? 0;
          // Line IDs restart with the process.
          if (lastId > recentLog.last) lastId = 0;
          let isScheduled = false;
          const sendLines = (): void => {
            isScheduled = false;
            const lines = recentLog.listAfter(lastId, MAX_LINES, matches);
            lastId = recentLog.last;
            if (lines.length > 0) feed.send(JSON.stringify(lines.map(presentLine)));
          };
          sendLines();
          return recentLog.onLines(() => {
            if (isScheduled) return;
            isScheduled = true;
            ctx.clock.after(BATCH_MS, sendLines);
          });
        });
      },
      {
        user: true,
        query,
        response: { 101: Upgraded, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "watchServerLog",
          summary: "Watch the server log",
          description:
            "A WebSocket of text messages. Each message is a list of lines: first the existing lines, then new ones.",
          sends: t.Array(ServerLogLine),
          access: "admins",
          scope: "all",
        }),
      },
    );
