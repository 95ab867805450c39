// What the OpenAPI document says in words: its introduction, and what each group of operations is about.
import { SESSION_HEADER } from "../identify.ts";

export const TAGS: { name: string; description: string }[] = [
  { name: "General", description: "Is it alive, which version is it." },
  { name: "Users", description: "People, their sign-ins and their API tokens." },
  { name: "Invitations", description: "Inviting people, and coming in with an invitation." },
  { name: "Second factors", description: "Authenticator apps, recovery codes, and confirming who one is." },
  { name: "API keys", description: "Session keys and tokens: make, list, expire, delete." },
  {
    name: "Secrets",
    description: "What people keep for their workspaces to find in variables and files; never returned.",
  },
  { name: "OAuth 2", description: "Programs that ask people for access, and what people have granted them." },
  { name: "External accounts", description: "Accounts at git hosts and other services that people link." },
  { name: "Organizations", description: "Who owns templates and workspaces together." },
  { name: "Groups", description: "Members who are given access together, and what their workspaces may cost." },
  { name: "Members", description: "Members of an organization and their roles there." },
  { name: "Templates", description: "What workspaces are made from: uploads, versions, templates." },
  { name: "Workspaces", description: "Workspaces and how to watch them." },
  { name: "Trash", description: "Deleted workspaces whose files are still there." },
  { name: "Snapshots", description: "Copies of a workspace's files at one moment." },
  { name: "Port sharing", description: "Ports of a workspace that others may open." },
  { name: "Builds", description: "Starting, stopping and deleting a workspace, with logs." },
  { name: "Provisioners", description: "Workers of their own that bring workspaces to life, and their keys." },
  { name: "Tasks", description: "A workspace for one prompt, and the chat that works on it." },
  { name: "Agents", description: "Workspace agents as people see them: state and logs." },
  { name: "Notifications", description: "What people are told: inbox, preferences, e-mail and browsers." },
  { name: "Applications", description: "Apps and ports on hosts of their own." },
  { name: "Chats", description: "Sessions with a coding agent: messages, queues, turns, and how to follow them." },
  { name: "AI gateway", description: "Who may call which models, and what the calls have used." },
  { name: "Coding agents", description: "Programs such as Claude Code that chats can be led with in a workspace." },
  { name: "Administration", description: "The server itself, for owners: its health, settings, backups and log." },
  { name: "Hooks", description: "What programs of the deployment have decided about chats." },
  { name: "Models", description: "Who provides language models, and the models that chats can use." },
  { name: "Skills", description: "Instructions that people have written for all of their chats." },
  { name: "MCP servers", description: "Servers whose tools an organization offers to its chats." },
  { name: "Insights", description: "Who used what, for how long, and how fast it was." },
  { name: "Audit", description: "Who changed what, when and from where." },
  { name: "Agent daemon", description: "What the program inside a workspace calls with its agent token." },
];

/** The beginning of the document. */
export const DESCRIPTION = `Sign in with \`POST /api/v2/users/login\`, or make a token on [the page of API tokens](/settings/tokens), and send it in
the header \`${SESSION_HEADER}\`. The button *Authorize* does that for every call made from this page (the first of its three fields is
the one for people). If you are signed in to Slipway in this browser, calls work without it.

Errors have one shape: \`{message, detail, validations}\`. A 4xx means that nothing was changed.`;
