// Texts for a trial and its ways. Pure.
import type { Trial, TrialWay } from "#schema/chats/trial.ts";
import type { StateKind } from "../../../data/states.ts";

const STATES: Readonly<Record<TrialWay["status"], readonly [kind: StateKind, words: string]>> = {
  waiting: ["busy", "Forking"],
  working: ["busy", "Working"],
  needs_you: ["needs", "Needs you"],
  checking: ["busy", "Checking"],
  passed: ["running", "Passed"],
  failed: ["failed", "Failed"],
  finished: ["done", "Finished"],
  stopped: ["stopped", "Stopped"],
  error: ["failed", "Error"],
};

/** Returns the glyph and label of a way's state. */
export const getWayState = ({ status }: Pick<TrialWay, "status">): readonly [kind: StateKind, words: string] =>
  STATES[status];

/** Returns the heading of the panel. */
export const formatTrialTitle = ({ status, ways, kept_way }: Pick<Trial, "status" | "ways" | "kept_way">): string => {
  switch (status) {
    case "running":
      return `Trying ${ways.length} ways`;
    case "ready":
      return `${ways.length} ways to choose from`;
    case "keeping":
      return `Keeping way ${kept_way}`;
    case "discarding":
      return "Discarding all ways";
    case "kept":
      return `Kept way ${kept_way}`;
    case "discarded":
      return "All ways discarded";
  }
};

/** True while a way is still running or waiting. */
export const isUnfinished = ({ status }: Pick<TrialWay, "status">): boolean =>
  status === "waiting" || status === "working" || status === "needs_you" || status === "checking";

/** Describes the result of the check. */
export const formatCheck = ({ exit_code, timed_out }: NonNullable<TrialWay["check"]>): string =>
  timed_out ? "Check timed out" : exit_code === null ? "Check stopped" : `Check exited with ${exit_code}`;

/** Milliseconds from the prompt to the end of the last turn, or to now; undefined before the prompt. */
export const getWayDuration = ({ started_at, ended_at }: TrialWay, now: number): number | undefined =>
  started_at === undefined ? undefined : Math.max(0, (ended_at ? Date.parse(ended_at) : now) - Date.parse(started_at));
