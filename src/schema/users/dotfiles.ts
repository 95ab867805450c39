// Wire shapes of dotfiles settings: a git repository that the user's workspaces install at each start.
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

const url = lineText({
  maxLength: 2_048,
  description: "The URL that git clones: http, https or ssh, or of the form `git@example.com:ada/dotfiles`.",
});
const branch = lineText({ maxLength: 255, description: "The branch or tag to clone. If empty, the default branch." });
const install_command = lineText({
  maxLength: 1_024,
  description:
    "A command that `sh` runs in the clone. If empty, the repository's install script runs; without one, its dotfiles are linked into the home directory.",
});

export const Dotfiles = namedObject("Dotfiles", {
  url: { ...url, description: `${url.description} Empty if there are no dotfiles.` },
  branch,
  install_command,
});
export type Dotfiles = Static<typeof Dotfiles>;

export const UpdateDotfiles = named(
  "UpdateDotfilesRequest",
  strictObject({
    url: { ...url, minLength: 1 },
    branch: t.Optional(branch),
    install_command: t.Optional(install_command),
  }),
);
export type UpdateDotfiles = Static<typeof UpdateDotfiles>;
