// `slipway chat keep CHAT WAY|none`: keeps one way of the chat's newest trial, or none, and waits until the forks are deleted.
import { usageError } from "#base/usage-error.ts";
import type { Trial } from "#schema/chats/trial.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { requireConfirmable, requireConfirmation } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getChat } from "./find.ts";
import { describeTrial, followTrial, getNewestTrial } from "./trial.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes", "no-wait"] });
  const [name, wanted, more] = words;
  if (name === undefined || wanted === undefined || more !== undefined) {
    throw usageError("chat keep", "expected the chat and the number of a way, or none");
  }
  const way = wanted === "none" ? undefined : Number(wanted);
  if (way !== undefined && !(Number.isInteger(way) && way > 0))
    throw usageError(wanted, "expected the number of a way, or none");
  requireConfirmable(input, has.yes, "changed");
  return withServer("chat keep", input, value, async ({ client }) => {
    const { id, chat_id, workspace_id } = await getNewestTrial(client, await getChat(client, name));
    const workspace = await client.get(`/api/v2/workspaces/${workspace_id}`);
    const warning =
      way === undefined
        ? "This moves the forks of all ways to the trash and archives their chats."
        : `This creates a snapshot of ${toPlainLine(workspace.name)}, replaces all of its files with those of way ${way}, and moves all forks to the trash.`;
    if (!has.yes) await requireConfirmation(input, `${warning} Continue?`);
    const path = `/api/v2/chats/${chat_id}/trials/${id}` as const;
    const endTrial = (): Promise<Trial> =>
      way === undefined ? client.post(`${path}/discard`) : client.post(`${path}/keep`, { way });
    const isOver = ({ status }: Trial): boolean => status !== "keeping" && status !== "discarding";
    const trial = has["no-wait"] ? await endTrial() : await followTrial(client, endTrial, isOver);
    const kept = trial.ways.find(({ number }) => number === trial.kept_way);
    if (has.json) input.print(JSON.stringify(trial));
    else if (trial.status === "kept" && kept) {
      input.print(`Kept way ${kept.number}. Its chat is ${kept.chat_id.slice(0, 8)}.`);
    } else input.print(describeTrial(trial));
    if (trial.status === "ready") throw new VerbFailure(`the way was not kept: ${toPlainLine(trial.error)}`);
  });
};
