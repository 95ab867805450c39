// The script that installs the dotfiles of a workspace's owner. Pure.
import type { ManifestScript } from "#schema/templates/manifest.ts";
import type { Dotfiles } from "#schema/users/dotfiles.ts";
import { quoted } from "#src/provisioners/repository/script.ts";

/** Seconds after which a start continues without them. */
const TIMEOUT = 300;

/** Calls `slipway dotfiles` of the agent's own program, so that there is one way to install them. */
export const dotfilesScript = ({ url, branch, install_command }: Dotfiles): ManifestScript => {
  const options = [
    "--yes",
    "--replace",
    ...(branch === "" ? [] : [`--branch=${quoted(branch)}`]),
    ...(install_command === "" ? [] : [`--install-command=${quoted(install_command)}`]),
  ];
  return {
    display_name: "Dotfiles",
    // Git must not wait for the owner to link an account: nothing else starts in the meantime.
    script: `SLIPWAY_GIT_NO_WAIT=1 exec "$CODER_SCRIPT_BIN_DIR/slipway" dotfiles ${options.join(" ")} ${quoted(url)}\n`,
    run_on_start: true,
    timeout: TIMEOUT,
  };
};
