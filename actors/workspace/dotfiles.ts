// The script that installs the dotfiles of a workspace's owner. Pure.
import type { ManifestScript } from "#schema/templates/manifest.ts";
import type { Dotfiles } from "#schema/users/dotfiles.ts";
import { shellQuote } from "#src/provisioners/repository/script.ts";

/** Timeout in seconds, after which a start continues without dotfiles. */
const TIMEOUT_SECONDS = 300;

/** Runs `slipway dotfiles` of the agent's own binary, so that there is only one implementation. */
export const toDotfilesScript = ({ url, branch, install_command }: Dotfiles): ManifestScript => {
  const options = [
    "--yes",
    "--replace",
    ...(branch === "" ? [] : [`--branch=${shellQuote(branch)}`]),
    ...(install_command === "" ? [] : [`--install-command=${shellQuote(install_command)}`]),
  ];
  return {
    display_name: "Dotfiles",
    // Git must not wait for the owner to link an account, because that would block the other start scripts.
    script: `SLIPWAY_GIT_NO_WAIT=1 exec "$CODER_SCRIPT_BIN_DIR/slipway" dotfiles ${options.join(" ")} ${shellQuote(url)}\n`,
    run_on_start: true,
    timeout: TIMEOUT_SECONDS,
  };
};
