// Finds secrets by name and reads their values: from a file or a pipe, or typed without echo. Never from an argument, which other users of
// the machine can read.
import { usageError } from "#base/usage-error.ts";
import type { UserSecret } from "#schema/users/user-secret.ts";
import { ApiError, type Client } from "#src/client.ts";
import { Prompter, readAllInput } from "../../ask.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { readOptionFile } from "../../options.ts";
import { getStreams } from "../../streams.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** The API path of the caller's own secrets. */
export const SECRETS_PATH = "/api/v2/users/me/secrets";
export const toSecretPath = (name: string) => `${SECRETS_PATH}/${encodeURIComponent(name)}` as const;

/** The options of `create` and `change`. */
export const SECRET_OPTIONS = ["env", "file", "description", "value-file"] as const;
type SecretOptions = Readonly<Partial<Record<(typeof SECRET_OPTIONS)[number], string>>>;

/** Converts the options to request fields. */
export const toSecretFields = ({ env, file, description }: SecretOptions) => ({
  ...(env === undefined ? {} : { env_name: env }),
  ...(file === undefined ? {} : { file_path: file }),
  ...(description === undefined ? {} : { description }),
});

/** Strips one trailing newline, which editors add. Throws UsageError if there is no value, or no terminal to prompt on. */
export const readSecret = async (input: VerbInput, file: string | undefined): Promise<string> => {
  const text = file === undefined ? await readValue(input) : trimNewline(readOptionFile("--value-file", file, input));
  if (text === "") throw usageError("secrets", "the value is empty");
  return text;
};

const readValue = async (input: VerbInput): Promise<string> => {
  const streams = getStreams(input);
  if (!streams.inputIsTerminal) return trimNewline(await readAllInput(streams));
  await using prompter = new Prompter(streams, input.printError);
  return prompter.promptSecret("Value: ");
};

const trimNewline = (text: string): string => text.replace(/\r?\n$/, "");

/** Returns the named secret, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectSecret = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<UserSecret>) => {
  const word = takeOneWord(input, words, "the secret, by its name");
  return async (client) => {
    const loadNames = async () => (await client.get(SECRETS_PATH)).map(({ name }) => name);
    const name = await promptIfMissing(input, word, "Secret", loadNames);
    return client.get(toSecretPath(name)).catch(async (error) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      throw await toUnknownNameError("secret", name, loadNames, "slipway secrets list");
    });
  };
};
