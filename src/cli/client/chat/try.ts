// `slipway chat try CHAT TEXT`: tries a prompt in several ways, and waits until all have ended.
import { duration } from "#base/config/kinds.ts";
import { usageError } from "#base/usage-error.ts";
import { type CreateTrial, MAX_CHECK_SECONDS, MAX_WAYS, MIN_WAYS, type Trial } from "#schema/chats/trial.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getModel, readPrompt, selectChat } from "./find.ts";
import { describeTrial, describeWay, followTrial } from "./trial.ts";

const DEFAULT_WAYS = 3;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, {
    values: ["ways", "check", "check-timeout"],
    lists: ["model"],
    switches: ["no-wait"],
  });
  const [name, ...promptWords] = words;
  const models = list.model;
  const count = parseCount(value.ways, models.length);
  const check =
    value["check-timeout"] === undefined ? {} : { check_timeout_seconds: parseSeconds(value["check-timeout"]) };
  return withServer("chat try", input, value, async ({ client }) => {
    const chat = await selectChat(input, client, name);
    const body: CreateTrial = {
      prompt: await readPrompt(input, promptWords),
      ...(await toWays(client, models, count)),
      ...(value.check === undefined ? {} : { check_command: value.check }),
      ...check,
    };
    const startTrial = (): Promise<Trial> => client.post(`/api/v2/chats/${chat.id}/trials`, body);
    if (has["no-wait"]) {
      const trial = await startTrial();
      input.print(has.json ? JSON.stringify(trial) : describeTrial(trial));
      return EXIT.ok;
    }
    const printed = new Map<number, string>();
    const trial = await followTrial(
      client,
      startTrial,
      ({ status }) => status !== "running",
      ({ ways }) => {
        for (const way of ways) {
          const line = describeWay(way);
          if (printed.get(way.number) !== line) input.printError(`${line}\n`);
          printed.set(way.number, line);
        }
      },
    );
    input.print(has.json ? JSON.stringify(trial) : describeTrial(trial));
    if (!has.json) input.printError(`Keep one of them with: slipway chat keep ${chat.id.slice(0, 8)} WAY\n`);
    const hasSucceeded = trial.ways.some(({ status }) => status === "passed" || status === "finished");
    return hasSucceeded ? EXIT.ok : EXIT.failed;
  });
};

const parseCount = (given: string | undefined, modelCount: number): number => {
  const count = given === undefined ? (modelCount > 1 ? modelCount : DEFAULT_WAYS) : Number(given);
  if (!(Number.isInteger(count) && count >= MIN_WAYS && count <= MAX_WAYS)) {
    throw usageError("chat try", `--ways is a number from ${MIN_WAYS} to ${MAX_WAYS}`);
  }
  if (modelCount > 1 && modelCount !== count) throw usageError("--model", "expected one for all ways, or one for each");
  return count;
};

const parseSeconds = (given: string): number => {
  const ms = duration(1_000, MAX_CHECK_SECONDS * 1_000).parse(given);
  if (ms === undefined) throw usageError("--check-timeout", "expected a duration from 1s to 1h, such as 10m");
  return Math.round(ms / 1_000);
};

/** Returns the ways of the request: with one model for all ways, or one for each. */
const toWays = async (client: Client, names: readonly string[], count: number): Promise<Partial<CreateTrial>> => {
  if (names.length === 0) return { count };
  const ids = await Promise.all(names.map((one) => getModel(client, one)));
  return {
    ways: Array.from({ length: count }, (_, index) => {
      const model_config_id = ids[index] ?? ids[0];
      return model_config_id === undefined ? {} : { model_config_id };
    }),
  };
};
