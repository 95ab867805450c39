// `slipway account dotfiles [REPOSITORY]`: the dotfiles that the user's workspaces install at each start.
import { usageError } from "#base/usage-error.ts";
import type { Dotfiles } from "#schema/users/dotfiles.ts";
import { readArguments } from "../../arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const PATH = "/api/v2/users/me/dotfiles";
const NO_DOTFILES: Dotfiles = { url: "", branch: "", install_command: "" };

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {
    values: ["branch", "install-command"],
    switches: ["remove"],
  });
  const [url, more] = words;
  const { branch, "install-command": install_command } = value;
  if (more !== undefined) throw usageError(more, "unexpected argument");
  if (url === undefined && (branch ?? install_command) !== undefined) {
    throw usageError("account dotfiles", "expected the repository with your dotfiles");
  }
  if (has.remove && url !== undefined) throw usageError("--remove", "not with a repository");
  return withServer("account dotfiles", input, value, async ({ client }) => {
    let dotfiles: Dotfiles = NO_DOTFILES;
    if (has.remove) await client.delete(PATH);
    else if (url === undefined) dotfiles = await client.get(PATH);
    else {
      dotfiles = await client.put(PATH, {
        url,
        ...(branch === undefined ? {} : { branch }),
        ...(install_command === undefined ? {} : { install_command }),
      });
    }
    input.print(has.json ? JSON.stringify(dotfiles) : describe(dotfiles));
  });
};

const describe = ({ url, branch, install_command }: Dotfiles): string => {
  if (url === "") return "Your workspaces install no dotfiles. Set them with `slipway account dotfiles REPOSITORY`.";
  const branchText = branch === "" ? "" : ` (${toPlainLine(branch)})`;
  const commandText = install_command === "" ? "" : ` with ${toPlainLine(install_command)}`;
  return `Your workspaces install ${toPlainLine(url)}${branchText}${commandText} at each start.`;
};
