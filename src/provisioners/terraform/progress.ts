// Converts the output of a command with `-json` to log lines, timings and errors (facts/terraform 1.18 to 1.20).
import { tryParseJson } from "#base/json/read.ts";
import type { Mask } from "#base/secrets/mask.ts";
import type { LogLevel, Report } from "../provisioner.ts";

export type Diagnostic = {
  readonly severity: string;
  readonly summary: string;
  readonly detail: string;
  /** The resource, such as data.coder_parameter.region; empty if the error is not about a resource. */
  readonly address: string;
};

/** Maximum number of errors that are kept for the job's error message. */
const MAX_ERRORS = 20;
/** The first line of a Go program's crash report. The other lines are only for its developers. */
const CRASH_LINE = /^(?:panic|fatal error|SIG[A-Z]+): /;
/** Terraform's message after SIGINT or SIGTERM. */
const INTERRUPT_MESSAGE = "Interrupt received.";
/** Maximum number of operations in progress; a real template has fewer. */
const MAX_OPERATIONS = 10_000;

const LEVELS: Readonly<Record<string, LogLevel>> = {
  trace: "trace",
  debug: "debug",
  info: "info",
  warn: "warn",
  error: "error",
};

type Line = {
  "@level"?: string;
  "@message"?: string;
  "@timestamp"?: string;
  /** Lines of TF_LOG do not have a type. */
  type?: string;
  hook?: { action?: string; resource?: { addr?: string; implied_provider?: string } };
  diagnostic?: {
    severity?: string;
    summary?: string;
    detail?: string;
    address?: string;
    range?: { filename?: string; start?: { line?: number } };
    snippet?: { context?: string; code?: string };
  };
};

export class Progress {
  readonly errors: Diagnostic[] = [];
  /** The first line of a crash report, without secrets. */
  crash: string | undefined;
  wasInterrupted = false;
  readonly #report: Report;
  readonly #mask: Mask;
  readonly #now: () => number;
  /** Start times of the operations in progress. */
  readonly #operations = new Map<string, number>();

  constructor(report: Report, mask: Mask, now: () => number) {
    this.#report = report;
    this.#mask = mask;
    this.#now = now;
  }

  /** Processes one line of output. `step`: the command, such as `plan`, which timings contain. */
  line(text: string, stage: string, step: string): void {
    if (text.trim() === "") return;
    const line = parse(text);
    if (!line) {
      if (CRASH_LINE.test(text)) this.crash ??= this.#mask.hide(text);
      this.#log("info", stage, text);
      return;
    }
    if (line.type === "log" && line["@message"]?.includes(INTERRUPT_MESSAGE)) this.wasInterrupted = true;
    if (line.diagnostic) this.#handleDiagnostic(line.diagnostic, stage);
    else if (line.type === undefined) this.#handleLogLine(line, stage);
    else this.#log(LEVELS[line["@level"] ?? ""] ?? "info", stage, line["@message"] ?? "");
    this.#handleTiming(line, step);
  }

  /** The errors for the job, one line each. */
  get reasons(): string[] {
    return this.errors.map(({ summary, detail }) => {
      const [first = ""] = detail.split("\n\n");
      return this.#mask.hide(first === "" ? summary : `${summary}: ${joinLines(first)}`);
    });
  }

  /** Handles a line of TF_LOG. Important messages are also printed elsewhere, so traces are omitted (facts/terraform 1.21). */
  #handleLogLine(line: Line, stage: string): void {
    const level = LEVELS[line["@level"] ?? ""] ?? "debug";
    if (level !== "trace") this.#log(level === "info" ? "debug" : level, stage, line["@message"] ?? "");
  }

  #log(level: LogLevel, stage: string, text: string): void {
    this.#report.log(level, stage, this.#mask.hide(text));
  }

  #handleDiagnostic(diagnostic: NonNullable<Line["diagnostic"]>, stage: string): void {
    const { severity = "error", summary = "", detail = "", address, range, snippet } = diagnostic;
    // Terraform prints this warning because a form's plan uses -target.
    if (summary === "Resource targeting is in effect") return;
    const level = severity === "warning" ? "warn" : "error";
    const resourceAddress = address ?? snippet?.context?.replace(/^data "([^"]+)" "([^"]+)"$/, "data.$1.$2") ?? "";
    if (level === "error" && this.errors.length < MAX_ERRORS) {
      this.errors.push({ severity, summary, detail, address: resourceAddress });
    }
    this.#log(level, stage, `${level === "warn" ? "Warning" : "Error"}: ${summary}`);
    if (range?.filename) {
      const location = `  on ${range.filename} line ${range.start?.line ?? 1}${snippet?.context ? `, in ${snippet.context}` : ""}`;
      this.#log(level, stage, `${location}:`);
      if (snippet?.code) this.#log(level, stage, `    ${snippet.code.trim()}`);
    }
    if (detail !== "") this.#log(level, stage, detail);
  }

  #handleTiming({ type = "", hook, "@timestamp": at }: Line, step: string): void {
    const [, kind = "", phase = ""] =
      /^(apply|refresh|provision|ephemeral_op)_(start|complete|errored)$/.exec(type) ?? [];
    const resource = hook?.resource?.addr;
    if (kind === "" || resource === undefined) return;
    const key = `${kind} ${resource}`;
    const now = at === undefined ? this.#now() : Date.parse(at) || this.#now();
    if (phase === "start") {
      if (this.#operations.size < MAX_OPERATIONS) this.#operations.set(key, now);
      return;
    }
    const started_at = this.#operations.get(key);
    if (started_at === undefined) return;
    this.#operations.delete(key);
    const action = kind === "refresh" ? "read" : (hook?.action ?? kind);
    const source = hook?.resource?.implied_provider ?? "";
    this.#report.timing({ action, resource, source, stage: step, started_at, ended_at: Math.max(started_at, now) });
  }
}

const parse = (text: string): Line | undefined =>
  text.startsWith("{") ? (tryParseJson(text) as Line | undefined) : undefined;

const joinLines = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trim())
    .join(" ");
