// Opens a link with the local program registered for it.
import { VerbFailure } from "../../failure.ts";

const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
  linux: ["xdg-open"],
};

/** Throws VerbFailure if there is no such program. `shown` is the link without its key, for the message. */
export const openInBrowser = async (link: string, shown = link): Promise<void> => {
  const [program = "", ...programOptions] = OPENERS[process.platform] ?? ["xdg-open"];
  const file = Bun.which(program);
  if (!file) throw new VerbFailure(`${program} was not found; open this URL yourself:\n${shown}`);
  const child = Bun.spawn([file, ...programOptions, link], { stdio: ["ignore", "ignore", "ignore"] });
  if ((await child.exited) !== 0) throw new VerbFailure(`${program} failed; open this URL yourself:\n${shown}`);
};
