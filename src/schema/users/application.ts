// Wire shapes of applications (specification "Application endpoints", facts/platform 8.4).
import { type Static, Type as t } from "@sinclair/typebox";
import { uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

export const ApplicationHost = namedObject("ApplicationHost", {
  host: t.String({
    description:
      "The wildcard host for apps and ports, such as `*.apps.example.com`, with the port. Empty if none is configured.",
  }),
  external_app_schemes: t.Array(t.String(), {
    description: "The URL schemes of external apps that an administrator trusts, such as `vscode`.",
  }),
});
export type ApplicationHost = Static<typeof ApplicationHost>;

export const TerminalTicketRequest = namedObject("TerminalTicketRequest", {
  url: t.String({ maxLength: 8192, description: "The WebSocket URL at which the terminal will be opened." }),
  agentID: uuid("The ID of the agent that serves the terminal."),
});

export const TerminalTicket = namedObject("TerminalTicket", {
  signed_token: t.String({
    description: "The ticket. Valid for one minute as the query parameter `signed_token` of the terminal's URL.",
  }),
});

const expires_at = t.String({ format: "date-time", description: "When the key expires, even if it is used." });

export const WorkspaceKey = namedObject("WorkspaceKey", {
  key: t.String({ description: "The key. It is returned only once." }),
  expires_at,
});
export type WorkspaceKey = Static<typeof WorkspaceKey>;

export const ExternalLink = namedObject("ExternalLink", {
  url: t.String({ description: "The link of the app, with a key for its workspace. It is returned only once." }),
  expires_at,
});
export type ExternalLink = Static<typeof ExternalLink>;
