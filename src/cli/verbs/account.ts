// The subcommands of `slipway account`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

export const ACCOUNT = group({
  area: "people",
  name: "account",
  help: "Show and change settings of your account.",
  details: () =>
    [
      "Workspaces install dotfiles before their start scripts. Changes apply from the next start, if the template allows dotfiles.",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    {
      name: "dotfiles",
      usage: "[REPOSITORY [--branch NAME] [--install-command COMMAND] | --remove]",
      help: "Shows, sets or removes the dotfiles that your workspaces install at each start.",
      load: () => import("../client/account/dotfiles.ts"),
    },
    {
      name: "deploy-keys list",
      usage: "",
      help: "Lists your deploy keys, each of which gives your workspaces access to one private repository.",
      load: async () => ({ run: (await import("../client/account/deploy-keys.ts")).list }),
    },
    {
      name: "deploy-keys create",
      usage: "REPOSITORY",
      help: "Creates a deploy key for a repository, and prints its public key and where to add it.",
      load: async () => ({ run: (await import("../client/account/deploy-keys.ts")).create }),
    },
    {
      name: "deploy-keys revoke",
      usage: "REPOSITORY",
      help: "Revokes your deploy key for a repository.",
      load: async () => ({ run: (await import("../client/account/deploy-keys.ts")).revoke }),
    },
  ],
});
