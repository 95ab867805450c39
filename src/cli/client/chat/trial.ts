// Prints trials: a table of the ways, and live progress until the ways have ended or the forks are deleted.
import type { Chat } from "#schema/chats/chat.ts";
import type { WatchEvent } from "#schema/chats/chat-event.ts";
import type { Trial, TrialWay } from "#schema/chats/trial.ts";
import type { Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { formatTable } from "../../options.ts";
import { formatSpan, toPlainLine } from "../../text.ts";
import { openSocket } from "../remote.ts";

const STATUS_LABELS: Readonly<Record<TrialWay["status"], string>> = {
  waiting: "forking",
  working: "working",
  needs_you: "needs you",
  checking: "checking",
  passed: "passed",
  failed: "failed",
  finished: "finished",
  stopped: "stopped",
  error: "error",
};

/** Returns one line for each way, and the error below. */
export const describeTrial = ({ ways, error, status, kept_way }: Trial): string => {
  const rows = ways.map((way) => [
    String(way.number),
    way.deleted ? "deleted" : STATUS_LABELS[way.status],
    formatChanges(way),
    way.check ? (way.check.timed_out ? "timed out" : `exit code ${way.check.exit_code ?? "unknown"}`) : "",
    formatTime(way),
    `$${(way.cost_micros / 1_000_000).toFixed(4)}`,
    way.chat_id.slice(0, 8),
  ]);
  const problems = ways.flatMap((way) => (way.error === "" ? [] : [`Way ${way.number}: ${toPlainLine(way.error)}`]));
  const end = status === "kept" ? [`Kept way ${kept_way}.`] : status === "discarded" ? ["Discarded all ways."] : [];
  return [
    formatTable(["WAY", "STATUS", "CHANGES", "CHECK", "TIME", "COST", "CHAT"], rows),
    ...problems,
    ...(error === "" ? [] : [`The way was not kept: ${toPlainLine(error)}`]),
    ...end,
  ].join("\n");
};

const formatChanges = ({ changes }: TrialWay): string => {
  if (!changes) return "";
  return `${changes.files === 1 ? "1 file" : `${changes.files} files`}, +${changes.added} -${changes.removed}`;
};

const formatTime = ({ started_at, ended_at }: TrialWay): string => {
  if (started_at === undefined || ended_at === undefined) return "";
  const ms = Date.parse(ended_at) - Date.parse(started_at);
  return ms < 60_000 ? `${Math.round(ms / 1_000)} s` : formatSpan(ms);
};

/** Describes the state of a way in a line. */
export const describeWay = ({ number, status, chat_id, error }: TrialWay): string => {
  const detail =
    status === "needs_you" ? `: slipway chat watch ${chat_id.slice(0, 8)}` : error && `: ${toPlainLine(error)}`;
  return `Way ${number}: ${STATUS_LABELS[status]}${detail}`;
};

/** Returns the newest trial of the chat. Throws VerbFailure if the chat has no trial. */
export const getNewestTrial = async (client: Client, { id }: Chat): Promise<Trial> => {
  const { trials } = await client.get(`/api/v2/chats/${id}/trials`);
  const [newest] = trials;
  if (newest) return newest;
  throw new VerbFailure(`no ways were tried in this chat. Try some with \`slipway chat try ${id.slice(0, 8)} TEXT\`.`);
};

/**
 * Waits until `isDone` returns true, and returns the trial. Calls `start` once the watch is open, so that no state is missed, and
 * `onChange` with each state of the trial.
 */
export const followTrial = async (
  client: Client,
  start: () => Promise<Trial>,
  isDone: (trial: Trial) => boolean,
  onChange: (trial: Trial) => void = () => {},
): Promise<Trial> => {
  using socket = await openSocket(client, "/api/v2/chats/watch");
  let trial = await start();
  onChange(trial);
  if (isDone(trial)) return trial;
  for await (const message of socket) {
    const { kind, chat } = JSON.parse(String(message)) as WatchEvent;
    if (kind !== "trial_change" || chat.id !== trial.chat_id) continue;
    trial = await client.get(`/api/v2/chats/${trial.chat_id}/trials/${trial.id}`);
    onChange(trial);
    if (isDone(trial)) return trial;
  }
  throw new VerbFailure(
    `the server ended the stream. \`slipway chat ways ${trial.chat_id.slice(0, 8)}\` shows their progress.`,
  );
};
