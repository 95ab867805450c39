// What a person reads when they come in: the file that the template names, before the first prompt. Not for commands, and not for those who have
// said that they want quiet, as other SSH servers do. [WN-10]
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

const MOST = 64 * 1024;
const QUIET = ".hushlogin";

/** As a terminal shows it; empty where there is nothing to say. */
export const messageOfTheDay = async (path: string, home: string): Promise<string> => {
  if (path === "" || existsSync(join(home, QUIET))) return "";
  try {
    if (!statSync(path).isFile()) return "";
    const text = await Bun.file(path).slice(0, MOST).text();
    return text === "" ? "" : `${text.trimEnd().replaceAll(/\r?\n/g, "\r\n")}\r\n`;
  } catch {
    // There is none, or it is not for this user.
    return "";
  }
};
