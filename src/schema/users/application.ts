// Wire shapes of applications (specification "Application endpoints", facts/platform 8.4).
import { type Static, Type as t } from "@sinclair/typebox";
import { uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

export const ApplicationHost = namedObject("ApplicationHost", {
  host: t.String({
    description:
      "Hosts of apps and ports stand below it: `*.apps.example.com`, with the port. Empty while none is set up.",
  }),
  external_app_schemes: t.Array(t.String(), {
    description: "Schemes of the programs that an administrator trusts with links of external apps, such as `vscode`.",
  }),
});
export type ApplicationHost = Static<typeof ApplicationHost>;

export const TerminalTicketRequest = namedObject("TerminalTicketRequest", {
  url: t.String({ maxLength: 8192, description: "Where the terminal will be opened: the address of its WebSocket." }),
  agentID: uuid("The agent that serves the terminal."),
});

export const TerminalTicket = namedObject("TerminalTicket", {
  signed_token: t.String({ description: "For the query of that address, as `signed_token`; good for a minute." }),
});

const expires_at = t.String({ format: "date-time", description: "When the key expires, even if it is used." });

export const WorkspaceKey = namedObject("WorkspaceKey", {
  key: t.String({ description: "The whole key. It is shown only this once." }),
  expires_at,
});
export type WorkspaceKey = Static<typeof WorkspaceKey>;

export const ExternalLink = namedObject("ExternalLink", {
  url: t.String({ description: "The app's link with a key for its workspace. It is shown only this once." }),
  expires_at,
});
export type ExternalLink = Static<typeof ExternalLink>;
