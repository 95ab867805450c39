// How a daemon says in its statistics which jobs work and how many of its streams are idle, and how the server reads it: one metric for each
// job, whose value is the share of a processor that it has used. Other daemons send none of them. Pure.

const NAME = "slipway_job";
const IDLE = "slipway_idle_streams";
/** The type of a metric that goes up and down. */
const GAUGE = 2;
const LABEL = "command";
/** Jobs of one report. */
export const MAX_JOBS = 5;
const MAX_COMMAND = 80;

export type Job = {
  /** A few words of the command, for people: `npm run build`. */
  readonly command: string;
  /** 1 is one processor, all the time. */
  readonly load: number;
};

type Metric = {
  readonly name: string;
  readonly value: number;
  readonly labels: readonly { readonly name: string; readonly value: string }[];
};

/** Returns the metrics that say so. `idle_streams`: connections that are open without being used: to ports, terminals, SSH sessions. */
export const toMetrics = (jobs: readonly Job[], idle_streams = 0) => [
  ...jobs.slice(0, MAX_JOBS).map(({ command, load }) => ({
    name: NAME,
    type: GAUGE,
    value: load,
    labels: [{ name: LABEL, value: command }],
  })),
  ...(idle_streams > 0 ? [{ name: IDLE, type: GAUGE, value: idle_streams, labels: [] }] : []),
];

/** Returns the words of a command without what could hide or turn anything. */
export const asCommand = (words: string): string =>
  words
    .replace(/[^\x20-\x7e]/g, "")
    .slice(0, MAX_COMMAND)
    .trim();

/** Returns how many of the open connections are idle streams. */
export const readIdleStreams = (metrics: readonly Metric[]): number =>
  Math.max(0, metrics.find(({ name }) => name === IDLE)?.value || 0);

/** Returns the jobs that metrics tell of, cleaned: they come from inside a workspace. */
export const readJobs = (metrics: readonly Metric[]): Job[] =>
  metrics
    .filter(({ name }) => name === NAME)
    .slice(0, MAX_JOBS)
    .flatMap(({ value, labels }) => {
      const said = labels.find(({ name }) => name === LABEL)?.value ?? "";
      const command = asCommand(said);
      return command === "" || !(value > 0) ? [] : [{ command, load: value }];
    });
