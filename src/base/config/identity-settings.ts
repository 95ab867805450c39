// Settings of signing in with cloud instance identities.
import { path } from "./kinds.ts";
import { optional } from "./setting.ts";

export const IDENTITY_SETTINGS = {
  identity_certificates: optional(path, {
    group: "Workspaces",
    help: "A folder with what is trusted to say which cloud machine an agent runs on: certificates in a/*.pem, b/roots/*.pem and b/intermediates/*.pem, and key sets in c/*.json. Read again each minute.",
    absent: "no agent can sign in with a cloud identity",
  }),
};
