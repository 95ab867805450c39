// Reading a provisioner job's log: as JSON, as text, or as a WebSocket that continues with what comes, one line a message, and closes
// when the job has ended and everything is sent (facts/wire 0). Used by builds and by template versions.
import { t } from "elysia";
import { presentJobLog } from "#actors/job/logs.ts";
import { findJob, JOB_LOG_PAGE, type JobLogRow, listJobLogs } from "#db/workspaces/jobs.ts";
import { maySeeWorkspace } from "#domain/access.ts";
import { workspaceAccess } from "#domain/live-access.ts";
import { JobLog } from "#schema/workspaces/job.ts";
import { LogQuery, type LogRequest } from "../agents/log-query.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { type Declared, operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { closeWhenAccessLost, closeWhenKeyGone } from "../http/revocation.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

type LogWords = Pick<Declared, "scope" | "placement"> & {
  readonly tags: string[];
  readonly operationId: string;
  readonly summary: string;
  /** Said behind the description that all logs of jobs have. */
  readonly more?: string;
};

/** What the routes of a job's log declare. */
export const jobLogRoute = ({ tags, operationId, summary, scope, placement, more = "" }: LogWords) => ({
  user: true as const,
  query: LogQuery,
  response: { 200: t.Array(JobLog), ...fails(400, 401, 404, 503) },
  detail: operation({
    tags,
    operationId,
    summary,
    description: `With \`follow\` a WebSocket: one line per message, closed with 1000 when the job has ended and all lines are sent.${more}`,
    answers: ["application/json", "text/plain"],
    sends: JobLog,
    scope,
    placement,
  }),
});

export type LoggedJob = { readonly id: string; readonly key: number };

/** A job's log never has more lines than its limit in bytes allows; this bounds one answer all the same. */
const ANSWER_LINES = 50_000;
/** Lines read and sent at a time by a follower, and bytes that may wait before it reads on. */
const STEP_LINES = 500;
const STEP_BYTES = 128 * 1024;

/** The answer to `GET .../logs`: an array, a text, or the upgrade. `workspace_id` for the log of a build. */
export const jobLogs = async (
  ctx: ApiContext,
  request: Request,
  job: LoggedJob,
  asked: LogRequest,
  caller: UserCaller,
  workspace_id?: string,
): Promise<JobLog[] | Response> => {
  if (asked.follow) {
    const follower = new JobLogFollower(ctx, job, asked);
    const closing = workspace_id
      ? closeWhenAccessLost(ctx, caller, workspaceAccess(ctx, workspace_id, maySeeWorkspace), follower)
      : closeWhenKeyGone(ctx, caller, follower);
    return ctx.sockets.upgrade(request, closing, { who: caller.user_id, compressed: asked.compress });
  }
  const rows: JobLogRow[] = [];
  let { after } = asked;
  while (rows.length < ANSWER_LINES) {
    const { before } = asked;
    const page = await ctx.store.all(listJobLogs({ job: job.key, after, before, limit: JOB_LOG_PAGE }));
    rows.push(...page);
    if (page.length < JOB_LOG_PAGE) break;
    after = page.at(-1)?.id ?? after;
  }
  if (asked.format === "json") return rows.map(presentJobLog);
  return new Response(rows.map(textLine).join(""), { headers: { "content-type": "text/plain; charset=utf-8" } });
};

const textLine = (row: JobLogRow): string => {
  const { created_at, log_level, log_source, stage, output } = presentJobLog(row);
  return `${created_at} [${log_level}] [${log_source}|${stage}] ${output}\n`;
};

/** Reads on from its cursor whenever the job says something; nothing is kept in memory for a slow reader. */
class JobLogFollower implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #job: LoggedJob;
  readonly #compress: boolean;
  #after: number;
  #leave: (() => void) | undefined;
  #reading = false;
  #again = false;

  constructor(ctx: ApiContext, job: LoggedJob, { after, compress }: LogRequest) {
    this.#ctx = ctx;
    this.#job = job;
    this.#after = after;
    this.#compress = compress;
  }

  open(socket: Socket): void {
    this.#leave = this.#ctx.topics.subscribe("job", this.#job.id, () => this.#wake(socket));
    this.#wake(socket);
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(socket: Socket): void {
    this.#wake(socket);
  }

  close(): void {
    this.#leave?.();
  }

  #wake(socket: Socket): void {
    this.#again = true;
    if (this.#reading) return;
    this.#reading = true;
    this.#read(socket)
      .catch(() => socket.close(CLOSE.internal, "the log cannot be read"))
      .finally(() => {
        this.#reading = false;
        if (this.#again && !socket.closing) this.#wake(socket);
      });
  }

  async #read(socket: Socket): Promise<void> {
    const { store } = this.#ctx;
    while (this.#again && !socket.closing) {
      this.#again = false;
      // Whether it has ended is read before its lines are, so that the last line cannot slip in between.
      const ended = (await store.get(findJob({ id: this.#job.id })))?.completed_at !== null;
      const before = Number.MAX_SAFE_INTEGER;
      const rows = await store.all(listJobLogs({ job: this.#job.key, after: this.#after, before, limit: STEP_LINES }));
      for (const row of rows) {
        // The rest is read when the reader has caught up: `drain` comes.
        if (socket.waiting > STEP_BYTES) return;
        if (!socket.send(JSON.stringify(presentJobLog(row)), this.#compress)) return;
        this.#after = row.id;
      }
      if (rows.length === STEP_LINES) this.#again = true;
      else if (ended) socket.close(CLOSE.normal, "the job has ended");
    }
  }
}
