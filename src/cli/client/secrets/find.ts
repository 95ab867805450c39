// Finds secrets by name and reads their values: from a file or a pipe, or typed without echo. Never from an argument, which other users of
// the machine can read.
import { usageError } from "#base/usage-error.ts";
import type { UserSecret } from "#schema/users/user-secret.ts";
import { ApiError, type Client } from "#src/client.ts";
import { Asker, allInput } from "../../ask.ts";
import { oneWord, promptIfMissing } from "../../asked.ts";
import { getStreams } from "../../streams.ts";
import { unknownName } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** The API path of the caller's own secrets. */
export const SECRETS_PATH = "/api/v2/users/me/secrets";
export const secretPath = (name: string) => `${SECRETS_PATH}/${encodeURIComponent(name)}` as const;

/** The options of `create` and `change`. */
export const PLACES = ["env", "file", "description", "value-file"] as const;
type Given = Readonly<Partial<Record<(typeof PLACES)[number], string>>>;

/** Converts the options to request fields. */
export const toSecretFields = ({ env, file, description }: Given) => ({
  ...(env === undefined ? {} : { env_name: env }),
  ...(file === undefined ? {} : { file_path: file }),
  ...(description === undefined ? {} : { description }),
});

/** Strips one trailing newline, which editors add. Throws UsageError if there is no value, or no terminal to prompt on. */
export const secretFrom = async (input: VerbInput, file: string | undefined): Promise<string> => {
  const text = file === undefined ? await typed(input) : read(input, file);
  if (text === "") throw usageError("secrets", "the value is empty");
  return text;
};

const read = ({ readFile }: VerbInput, file: string): string => {
  try {
    return readFile(file).replace(/\r?\n$/, "");
  } catch (error) {
    throw usageError("--value-file", `${file} cannot be read: ${(error as Error).message}`);
  }
};

const typed = async (input: VerbInput): Promise<string> => {
  const streams = getStreams(input);
  if (!streams.inputIsTerminal) return (await allInput(streams)).replace(/\r?\n$/, "");
  await using asker = new Asker(streams, input.printError);
  return asker.secret("Value: ");
};

/** Returns the named secret, or prompts for one on a terminal. Throws UsageError before any request. */
export const secretAsked = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<UserSecret>) => {
  const word = oneWord(input, words, "the secret, by its name");
  return async (client) => {
    const names = async () => (await client.get(SECRETS_PATH)).map(({ name }) => name);
    const name = await promptIfMissing(input, word, "Secret", names);
    return client.get(secretPath(name)).catch(async (error) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      throw await unknownName("secret", name, names, "slipway secrets list");
    });
  };
};
