// The prose of the OpenAPI document: its introduction and the descriptions of the operation groups.
import { SESSION_HEADER } from "../identify.ts";

export const TAGS: { name: string; description: string }[] = [
  { name: "General", description: "Health and version." },
  { name: "Users", description: "Users, their sign-ins and their API tokens." },
  { name: "Invitations", description: "Inviting users and accepting invitations." },
  { name: "Second factors", description: "Authenticator apps, recovery codes and identity confirmation." },
  { name: "API keys", description: "Session keys and tokens: create, list, expire, delete." },
  {
    name: "Secrets",
    description: "Secrets that workspaces get as environment variables or files; values are never returned.",
  },
  { name: "OAuth 2", description: "OAuth applications and the access that users have granted them." },
  { name: "External accounts", description: "Accounts at git hosts and other services that people link." },
  { name: "Organizations", description: "Organizations, which own templates and workspaces." },
  { name: "Groups", description: "Groups of members, for sharing and for quotas." },
  { name: "Members", description: "Members of an organization and their roles there." },
  { name: "Templates", description: "What workspaces are made from: uploads, versions, templates." },
  { name: "Workspaces", description: "Workspaces and how to watch them." },
  { name: "Trash", description: "Deleted workspaces whose files can be restored." },
  { name: "Snapshots", description: "Copies of a workspace's files at one moment." },
  { name: "Home backups", description: "Copies of a workspace's files in a folder or a bucket." },
  { name: "Port sharing", description: "Ports of a workspace that others can open." },
  { name: "Builds", description: "Starting, stopping and deleting a workspace, with logs." },
  { name: "Provisioners", description: "External workers that build workspaces, and their keys." },
  { name: "Tasks", description: "A workspace for one prompt, and the chat that works on it." },
  { name: "Agents", description: "Workspace agents: state and logs." },
  { name: "Notifications", description: "Notifications: inbox, preferences, email and browsers." },
  { name: "Applications", description: "Apps and ports on their own host names." },
  { name: "Chats", description: "Sessions with a coding agent: messages, queues, turns, and how to follow them." },
  { name: "AI gateway", description: "Settings, calls and usage of the AI gateway." },
  { name: "Coding agents", description: "Programs such as Claude Code that work on chats in a workspace." },
  { name: "Administration", description: "The server itself, for owners: its health, settings, backups and log." },
  { name: "Hooks", description: "Lifecycle hooks and their decisions." },
  { name: "Models", description: "Model providers and the models that chats can use." },
  { name: "Skills", description: "Instructions that users write for all of their chats." },
  { name: "MCP servers", description: "MCP servers whose tools an organization offers to its chats." },
  { name: "Insights", description: "Usage and latency reports." },
  { name: "Audit", description: "The audit log." },
  { name: "Agent daemon", description: "Endpoints for the agent inside a workspace." },
];

/** The introduction of the document. */
export const DESCRIPTION = `Sign in with \`POST /api/v2/users/login\`, or create a token on [the API tokens page](/settings/tokens), and send it in the header \`${SESSION_HEADER}\`. The *Authorize* button does that for every call made from this page (use the first of its three fields). If you are signed in to Slipway in this browser, calls work without it. All errors have the same shape: \`{message, detail, validations}\`. A 4xx response means that nothing changed.`;
