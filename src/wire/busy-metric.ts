// Encodes a daemon's running jobs and idle streams as metrics, and decodes them on the server: one metric per job, whose value is the job's
// CPU load. Agents other than Slipway's own daemon do not send these metrics. Pure.

const JOB_METRIC = "slipway_job";
const IDLE_STREAMS_METRIC = "slipway_idle_streams";
/** The metric type gauge. */
const GAUGE = 2;
const COMMAND_LABEL = "command";
/** Maximum number of jobs in one report. */
export const MAX_JOBS = 5;
const MAX_COMMAND_LENGTH = 80;

export type Job = {
  /** The start of the command, for display: `npm run build`. */
  readonly command: string;
  /** 1 is one CPU at full load. */
  readonly load: number;
};

type Metric = {
  readonly name: string;
  readonly value: number;
  readonly labels: readonly { readonly name: string; readonly value: string }[];
};

/** Encodes jobs and idle streams. `idle_streams`: number of open but unused connections to ports, terminals and SSH sessions. */
export const toMetrics = (jobs: readonly Job[], idle_streams = 0) => [
  ...jobs.slice(0, MAX_JOBS).map(({ command, load }) => ({
    name: JOB_METRIC,
    type: GAUGE,
    value: load,
    labels: [{ name: COMMAND_LABEL, value: command }],
  })),
  ...(idle_streams > 0 ? [{ name: IDLE_STREAMS_METRIC, type: GAUGE, value: idle_streams, labels: [] }] : []),
];

/** Returns a command line in printable ASCII only, without control characters and direction marks, cut to its maximum length. */
export const sanitizeCommand = (commandLine: string): string =>
  commandLine
    .replace(/[^\x20-\x7e]/g, "")
    .slice(0, MAX_COMMAND_LENGTH)
    .trim();

/** Returns the number of idle streams in the metrics; 0 if they have none. */
export const readIdleStreams = (metrics: readonly Metric[]): number =>
  Math.max(0, metrics.find(({ name }) => name === IDLE_STREAMS_METRIC)?.value || 0);

/** Returns the jobs in the metrics, sanitized, because they come from inside a workspace. */
export const readJobs = (metrics: readonly Metric[]): Job[] =>
  metrics
    .filter(({ name }) => name === JOB_METRIC)
    .slice(0, MAX_JOBS)
    .flatMap(({ value, labels }) => {
      const labelValue = labels.find(({ name }) => name === COMMAND_LABEL)?.value ?? "";
      const command = sanitizeCommand(labelValue);
      return command === "" || !(value > 0) ? [] : [{ command, load: value }];
    });
