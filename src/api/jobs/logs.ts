// Returns a provisioner job's log as JSON, as text, as a WebSocket with one line per message that closes when the job has ended and every
// line is sent (facts/wire 0), or the same as server-sent events. Used by builds and template versions.
import { t } from "elysia";
import { presentJobLog } from "#actors/job/logs.ts";
import { findJob, JOB_LOG_PAGE, type JobLogRow, listJobLogs } from "#db/workspaces/jobs.ts";
import { canSeeWorkspace } from "#domain/access.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { JobLog } from "#schema/workspaces/job.ts";
import { LogQuery, type LogRequest } from "../agents/log-query.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { type EventStream, eventStream } from "../http/event-stream.ts";
import { type OperationOptions, operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { closeWhenAccessLost, closeWhenKeyRevoked, watchAccess, watchKey } from "../http/revocation.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

type JobLogRouteOptions = Pick<OperationOptions, "access" | "scope" | "placement"> & {
  readonly tags: string[];
  readonly operationId: string;
  readonly summary: string;
  /** Appended to the common description of job logs. */
  readonly moreDescription?: string;
};

/** Returns the declarations of a job log route. */
export const jobLogRoute = ({
  tags,
  operationId,
  summary,
  access,
  scope,
  placement,
  moreDescription = "",
}: JobLogRouteOptions) => ({
  user: true as const,
  query: LogQuery,
  response: { 200: t.Array(JobLog), ...fails(400, 401, 404, 503) },
  detail: operation({
    tags,
    operationId,
    summary,
    description: `Returns log lines. With \`follow\`, this is a WebSocket with one line per message, closed with 1000 when the job has ended and all lines are sent. With \`Accept: text/event-stream\` as well, each line is a \`data\` event, and an \`end\` event comes after the last line.${moreDescription}`,
    answers: ["application/json", "text/plain", "text/event-stream"],
    sends: JobLog,
    access,
    scope,
    placement,
  }),
});

export type LoggedJob = { readonly id: string; readonly key: number };

/** Maximum lines of one response; the byte limit of a job's log already limits them in practice. */
const MAX_RESPONSE_LINES = 50_000;
/** Lines a follower reads and sends at a time, and the bytes that may wait before it continues. */
const BATCH_LINES = 500;
const MAX_WAITING_BYTES = 128 * 1024;
/** An event stream whose client reads nothing for this long is ended. */
const STALL_TIMEOUT_MS = 10_000;

/** Returns the response to `GET .../logs`: an array, text, or the upgrade. `workspace_id` is set for a build's log. */
export const jobLogs = async (
  ctx: ApiContext,
  request: Request,
  job: LoggedJob,
  requested: LogRequest,
  caller: UserCaller,
  workspace_id?: string,
): Promise<JobLog[] | Response> => {
  if (requested.follow) {
    const follower = new JobLogFollower(ctx, job, requested);
    const access = workspace_id === undefined ? undefined : makeWorkspaceAccess(ctx, workspace_id, canSeeWorkspace);
    if (request.headers.get("accept")?.includes("text/event-stream")) {
      return eventStream(ctx, request, (stream) => {
        const end = () => stream.end();
        const unwatch = access ? watchAccess(ctx, caller, access, end) : watchKey(ctx, caller, end);
        followAsEvents(ctx, follower, stream);
        return () => {
          follower.stop();
          unwatch();
        };
      });
    }
    const socket = new JobLogSocket(follower, requested.compress);
    const guardedSocket = access
      ? closeWhenAccessLost(ctx, caller, access, socket)
      : closeWhenKeyRevoked(ctx, caller, socket);
    return ctx.sockets.upgrade(request, guardedSocket, { who: caller.user_id, compressed: requested.compress });
  }
  const rows: JobLogRow[] = [];
  let { after } = requested;
  while (rows.length < MAX_RESPONSE_LINES) {
    const { before } = requested;
    const page = await ctx.store.all(listJobLogs({ job: job.key, after, before, limit: JOB_LOG_PAGE }));
    rows.push(...page);
    if (page.length < JOB_LOG_PAGE) break;
    after = page.at(-1)?.id ?? after;
  }
  if (requested.format === "json") return rows.map(presentJobLog);
  return new Response(rows.map(formatTextLine).join(""), { headers: { "content-type": "text/plain; charset=utf-8" } });
};

const formatTextLine = (row: JobLogRow): string => {
  const { created_at, log_level, log_source, stage, output } = presentJobLog(row);
  return `${created_at} [${log_level}] [${log_source}|${stage}] ${output}\n`;
};

/** Receives a follower's lines. */
interface LineSink {
  readonly isOver: boolean;
  /** Returns false while the client has too much to read; the follower is woken when there is room. */
  hasRoom(): boolean;
  /** Returns false when the client has disconnected. */
  send(line: string): boolean;
  end(why: "complete" | "failed"): void;
}

/** Reads the lines after its cursor whenever the job has logged more. Nothing is buffered for a slow client. */
class JobLogFollower {
  readonly #ctx: ApiContext;
  readonly #job: LoggedJob;
  #after: number;
  #unsubscribe: (() => void) | undefined;
  #isReading = false;
  #needsRead = false;

  constructor(ctx: ApiContext, job: LoggedJob, { after }: LogRequest) {
    this.#ctx = ctx;
    this.#job = job;
    this.#after = after;
  }

  start(sink: LineSink): void {
    this.#unsubscribe = this.#ctx.topics.subscribe("job", this.#job.id, () => this.wake(sink));
    this.wake(sink);
  }

  stop(): void {
    this.#unsubscribe?.();
  }

  wake(sink: LineSink): void {
    this.#needsRead = true;
    if (this.#isReading) return;
    this.#isReading = true;
    this.#read(sink)
      .catch(() => sink.end("failed"))
      .finally(() => {
        this.#isReading = false;
        if (this.#needsRead && !sink.isOver) this.wake(sink);
      });
  }

  async #read(sink: LineSink): Promise<void> {
    const { store } = this.#ctx;
    while (this.#needsRead && !sink.isOver) {
      this.#needsRead = false;
      // Read before the lines, so that the last line cannot be missed.
      const ended = (await store.get(findJob({ id: this.#job.id })))?.completed_at !== null;
      const before = Number.MAX_SAFE_INTEGER;
      const rows = await store.all(listJobLogs({ job: this.#job.key, after: this.#after, before, limit: BATCH_LINES }));
      for (const row of rows) {
        if (!sink.hasRoom()) return;
        if (!sink.send(JSON.stringify(presentJobLog(row)))) return;
        this.#after = row.id;
      }
      if (rows.length === BATCH_LINES) this.#needsRead = true;
      else if (ended) sink.end("complete");
    }
  }
}

/** Sends one line per message. */
class JobLogSocket implements SocketHandler {
  readonly #follower: JobLogFollower;
  readonly #compress: boolean;
  #sink: LineSink | undefined;

  constructor(follower: JobLogFollower, compress: boolean) {
    this.#follower = follower;
    this.#compress = compress;
  }

  open(socket: Socket): void {
    const compress = this.#compress;
    this.#sink = {
      get isOver() {
        return socket.closing;
      },
      // `drain` is called when there is room again.
      hasRoom: () => socket.waiting <= MAX_WAITING_BYTES,
      send: (line) => socket.send(line, compress),
      end: (why) => {
        if (why === "complete") socket.close(CLOSE.normal, "the job has ended");
        else socket.close(CLOSE.internal, "the log cannot be read");
      },
    };
    this.#follower.start(this.#sink);
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(): void {
    if (this.#sink) this.#follower.wake(this.#sink);
  }

  close(): void {
    this.#follower.stop();
  }
}

/** Sends each line as a `data` event, and `end` after the last line of a finished job. */
const followAsEvents = (ctx: ApiContext, follower: JobLogFollower, stream: EventStream): void => {
  let isOver = false;
  const sink: LineSink = {
    get isOver() {
      return isOver;
    },
    hasRoom: () => {
      if (stream.waiting <= MAX_WAITING_BYTES) return true;
      const stallTimer = ctx.clock.after(STALL_TIMEOUT_MS, () => stream.terminate());
      void stream.waitForRoom(MAX_WAITING_BYTES).then((hasRoom) => {
        stallTimer.cancel();
        if (hasRoom) follower.wake(sink);
      });
      return false;
    },
    send: (line) => stream.send("data", line),
    end: (why) => {
      isOver = true;
      if (why === "complete") stream.send("end", "{}");
      stream.end();
    },
  };
  follower.start(sink);
};
