// Reads the error messages of container engines.

import { parseJson, readStart } from "./json/read.ts";

const MAX_BYTES = 4096;

/** Returns the message of an error response, or its status. */
export const readEngineError = async (response: Response): Promise<string> => {
  const text = (await readStart(response, MAX_BYTES)).trim();
  try {
    const { message } = parseJson(text) as { message?: unknown };
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // Not JSON: a proxy in front of the engine responded.
  }
  return text || `status ${response.status}`;
};
