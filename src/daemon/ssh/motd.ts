// The message of the day: the file that the template names, shown before the first prompt. Like other SSH servers, skips it for commands
// and for users who have asked for quiet. [WN-10]
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

const MAX_MOTD_BYTES = 64 * 1024;
const HUSHLOGIN_FILE = ".hushlogin";

/** Returns the message with terminal line ends; empty if none exists. */
export const loadMessageOfTheDay = async (path: string, home: string): Promise<string> => {
  if (path === "" || existsSync(join(home, HUSHLOGIN_FILE))) return "";
  try {
    if (!statSync(path).isFile()) return "";
    const text = await Bun.file(path).slice(0, MAX_MOTD_BYTES).text();
    return text === "" ? "" : `${text.trimEnd().replaceAll(/\r?\n/g, "\r\n")}\r\n`;
  } catch {
    // The file does not exist or is not readable for this user.
    return "";
  }
};
