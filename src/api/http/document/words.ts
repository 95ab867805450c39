// The prose of the OpenAPI document: its introduction and the descriptions of the operation groups.
import { SESSION_HEADER } from "../identify.ts";

export const TAGS: { name: string; description: string }[] = [
  { name: "General", description: "Health checks and build information." },
  { name: "Users", description: "Users, their sign-ins and their API tokens." },
  { name: "Invitations", description: "Invitations to the deployment." },
  { name: "Second factors", description: "Authenticator apps, recovery codes and identity confirmation." },
  { name: "API keys", description: "Session keys and tokens: create, list, expire, delete." },
  {
    name: "Secrets",
    description: "Secrets that workspaces get as environment variables or files. Values are never returned.",
  },
  { name: "OAuth 2", description: "OAuth applications and the access that users have granted them." },
  { name: "External accounts", description: "Users' linked accounts at Git hosts and other services." },
  { name: "Organizations", description: "Organizations, which own templates and workspaces." },
  { name: "Groups", description: "Groups of organization members, for sharing and quotas." },
  { name: "Members", description: "Members of organizations and their roles." },
  { name: "Templates", description: "Templates that workspaces are created from, with their versions and uploads." },
  { name: "Workspaces", description: "Workspaces: create, list, update and watch them." },
  { name: "Trash", description: "Deleted workspaces whose files can be restored." },
  { name: "Snapshots", description: "Copies of a workspace's files at a point in time." },
  { name: "Home backups", description: "Backups of a workspace's files in a folder or a bucket." },
  { name: "Port sharing", description: "Ports of a workspace that others can open." },
  { name: "Builds", description: "Builds, which start, stop and delete workspaces, and their logs." },
  { name: "Provisioners", description: "External workers that run builds, and their keys." },
  { name: "Tasks", description: "Tasks: a workspace for one prompt, and the chat that works on it." },
  { name: "Agents", description: "Workspace agents: their state, files, terminals and logs." },
  { name: "Notifications", description: "Notifications: inbox, preferences, email and browsers." },
  { name: "Applications", description: "Apps and ports on their own host names." },
  { name: "Chats", description: "Chats with a model or coding agent: messages, queues, turns and streams." },
  { name: "AI gateway", description: "Settings, calls and usage of the AI gateway." },
  { name: "Coding agents", description: "Programs such as Claude Code that work on chats in a workspace." },
  { name: "Administration", description: "The server itself, for owners: health, settings, backups and log." },
  { name: "Hooks", description: "Lifecycle hooks and their decisions." },
  { name: "Models", description: "Model providers and the models that chats can use." },
  { name: "Skills", description: "Instructions that users write for all their chats." },
  { name: "MCP servers", description: "MCP servers whose tools an organization offers to its chats." },
  { name: "Insights", description: "Reports on usage, latency, builds and cost." },
  { name: "Audit", description: "The audit log." },
  { name: "Agent daemon", description: "Operations for the agent inside a workspace." },
];

/** The introduction of the document. */
export const DESCRIPTION = `Sign in with \`POST /api/v2/users/login\`, or create a token on [the API tokens page](/settings/tokens), and send it in the header \`${SESSION_HEADER}\`. The *Authorize* button does that for every call made from this page (use the first of its three fields). If you are signed in to Slipway in this browser, calls work without it. All errors have the same shape: \`{message, detail, validations}\`. A 4xx response means that nothing changed.`;
