// Which node each operation belongs to, decided by people: a new one has to be put into its row (rule CP-20). `A B /path` are two operations; those of
// chats and skills count for both of their addresses.

import type { Way } from "#src/api/http/placement/ways.ts";
import { OF_FIRST_NODE } from "./first.ts";

export const TABLE: Readonly<Record<Way, string>> = {
  // They say what the node knows of itself, or live by the database and by what is heard on all nodes.
  here: `
    GET /api/v2/audit/watch
    GET /api/v2/notifications/inbox/watch
    GET /api/v2/workspaces/watch
    GET /healthz
    GET /readyz
  `,
  // By the token of the agent: tunnel, RPC and the actor of the agent are where its workspace is.
  token: `
    PATCH /api/v2/workspaceagents/me/app-status
    GET /api/v2/workspaceagents/me/external-auth
    GET /api/v2/workspaceagents/me/gitauth
    GET /api/v2/workspaceagents/me/gitsshkey
    POST /api/v2/workspaceagents/me/log-source
    PATCH /api/v2/workspaceagents/me/logs
    GET /api/v2/workspaceagents/me/reinit
    GET /api/v2/workspaceagents/me/rpc
    POST /api/v2/workspaceagents/me/tasks/:task/log-snapshot
    GET /api/v2/workspaceagents/me/tunnel
  `,
  // What is made gets the part of the user who will own it, and all chats of a user are told there. A prebuild that is claimed stays in its template's: a message reaches it.
  owner: `
    GET /api/v2/chats/watch
    POST /api/v2/chats
    POST /api/v2/organizations/:organization/members/:user/workspaces
    POST /api/v2/tasks/:user
    POST /api/v2/users/:user/workspaces
  `,
  // By the id of the workspace; what a page begins with is read by its node, too.
  workspace: `
    GET PATCH /api/v2/workspaces/:workspace
    DELETE GET PATCH /api/v2/workspaces/:workspace/acl
    GET /api/v2/workspaces/:workspace/activity
    PUT /api/v2/workspaces/:workspace/autostart
    PUT /api/v2/workspaces/:workspace/autoupdates
    GET POST /api/v2/workspaces/:workspace/builds
    PUT /api/v2/workspaces/:workspace/dormant
    PUT /api/v2/workspaces/:workspace/extend
    GET /api/v2/workspaces/:workspace/external-agent/:agent/credentials
    DELETE PUT /api/v2/workspaces/:workspace/favorite
    DELETE GET POST /api/v2/workspaces/:workspace/port-share
    GET /api/v2/workspaces/:workspace/resolve-autostart
    POST /api/v2/workspaces/:workspace/restart
    GET /api/v2/workspaces/:workspace/timings
    PUT /api/v2/workspaces/:workspace/ttl
    POST /api/v2/workspaces/:workspace/usage
    GET /api/v2/workspaces/:workspace/watch
    GET /api/v2/workspaces/:workspace/watch-ws
    GET /workspaces/:workspace
    GET /workspaces/:workspace/:tab
  `,
  // By the names of owner and workspace.
  named_workspace: `
    GET /api/v2/users/:user/workspace/:workspacename
    GET /api/v2/users/:user/workspace/:workspacename/builds/:buildnumber
  `,
  // By the agent: what dials into the workspace does it where the agent's tunnel ends.
  agent: `
    GET /api/v2/workspaceagents/:workspaceagent
    GET /api/v2/workspaceagents/:workspaceagent/connection
    GET /api/v2/workspaceagents/:workspaceagent/containers
    DELETE /api/v2/workspaceagents/:workspaceagent/containers/devcontainers/:devcontainer
    POST /api/v2/workspaceagents/:workspaceagent/containers/devcontainers/:devcontainer/recreate
    GET /api/v2/workspaceagents/:workspaceagent/containers/watch
    GET /api/v2/workspaceagents/:workspaceagent/coordinate
    GET POST /api/v2/workspaceagents/:workspaceagent/files
    GET /api/v2/workspaceagents/:workspaceagent/files/content
    GET /api/v2/workspaceagents/:workspaceagent/listening-ports
    GET /api/v2/workspaceagents/:workspaceagent/logs
    GET /api/v2/workspaceagents/:workspaceagent/pty
    GET /api/v2/workspaceagents/:workspaceagent/startup-logs
    GET /api/v2/workspaceagents/:workspaceagent/watch-metadata
    GET /api/v2/workspaceagents/:workspaceagent/watch-metadata-ws
    GET /terminals/:agent
  `,
  // By the build.
  build: `
    GET /api/v2/workspacebuilds/:workspacebuild
    PATCH /api/v2/workspacebuilds/:workspacebuild/cancel
    GET /api/v2/workspacebuilds/:workspacebuild/logs
    GET /api/v2/workspacebuilds/:workspacebuild/parameters
    GET /api/v2/workspacebuilds/:workspacebuild/resources
    GET PUT /api/v2/workspacebuilds/:workspacebuild/state
    GET /api/v2/workspacebuilds/:workspacebuild/timings
  `,
  // By the task, by its id or its name: it is of the part of its workspace.
  task: `
    DELETE GET /api/v2/tasks/:user/:task
    PATCH /api/v2/tasks/:user/:task/input
    GET /api/v2/tasks/:user/:task/logs
    POST /api/v2/tasks/:user/:task/pause
    POST /api/v2/tasks/:user/:task/resume
    POST /api/v2/tasks/:user/:task/send
  `,
  // By the chat.
  chat: `
    DELETE GET PATCH /api/v2/chats/:chat
    GET PATCH /api/v2/chats/:chat/acl
    POST /api/v2/chats/:chat/clear
    POST /api/v2/chats/:chat/compact
    PUT /api/v2/chats/:chat/context
    GET /api/v2/chats/:chat/cost
    GET /api/v2/chats/:chat/debug/runs
    GET /api/v2/chats/:chat/debug/runs/:run
    GET /api/v2/chats/:chat/diff
    POST /api/v2/chats/:chat/fork
    POST /api/v2/chats/:chat/interrupt
    GET POST /api/v2/chats/:chat/messages
    PATCH /api/v2/chats/:chat/messages/:message
    POST /api/v2/chats/:chat/permissions
    GET /api/v2/chats/:chat/prompts
    DELETE /api/v2/chats/:chat/queue/:queuedMessage
    POST /api/v2/chats/:chat/queue/:queuedMessage/promote
    POST /api/v2/chats/:chat/reconcile-invalid
    GET /api/v2/chats/:chat/stream
    POST /api/v2/chats/:chat/title/propose
    POST /api/v2/chats/:chat/tool-results
    GET /chats/:chat
  `,
  // By the workspace of the chat, into which they dial; a chat may work in a workspace of another part.
  chat_workspace: `
    GET /api/experimental/chats/:chat/stream/desktop
    GET /api/v2/chats/:chat/stream/git
  `,
  // By the version, of which its imports and dry runs are.
  template_version: `
    GET PATCH /api/v2/templateversions/:templateversion
    POST /api/v2/templateversions/:templateversion/archive
    PATCH /api/v2/templateversions/:templateversion/cancel
    POST /api/v2/templateversions/:templateversion/dry-run
    GET /api/v2/templateversions/:templateversion/dry-run/:job
    PATCH /api/v2/templateversions/:templateversion/dry-run/:job/cancel
    GET /api/v2/templateversions/:templateversion/dry-run/:job/logs
    GET /api/v2/templateversions/:templateversion/dry-run/:job/resources
    GET /api/v2/templateversions/:templateversion/dynamic-parameters
    POST /api/v2/templateversions/:templateversion/dynamic-parameters/evaluate
    GET /api/v2/templateversions/:templateversion/external-auth
    GET /api/v2/templateversions/:templateversion/logs
    GET /api/v2/templateversions/:templateversion/resources
    GET /api/v2/templateversions/:templateversion/rich-parameters
    POST /api/v2/templateversions/:templateversion/unarchive
    GET /api/v2/templateversions/:templateversion/variables
  `,
  // By the build, the version or the dry run of the job.
  job: `
    GET /api/v2/organizations/:organization/provisionerjobs/:job
    GET /api/v2/organizations/:organization/provisionerjobs/:job/logs
  `,
  // What is written and belongs to no part, what there is once, what is of several parts, and what only reads and is answered here anyway.
  first: OF_FIRST_NODE,
};
