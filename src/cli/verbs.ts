// The table of verbs. Each is loaded by a literal import, so that the bundler sees it and only the verb that runs is loaded.
import type { Verb } from "./verb.ts";
import { ACCOUNT } from "./verbs/account.ts";
import { BUDGETS } from "./verbs/budgets.ts";
import { CHAT } from "./verbs/chat.ts";
import { LOGS, SIGNING_IN } from "./verbs/client.ts";
import { CONNECTIONS } from "./verbs/connections.ts";
import { GROUPS } from "./verbs/groups.ts";
import { HOME_BACKUPS } from "./verbs/home-backups.ts";
import { NETWORK } from "./verbs/network.ts";
import { OAUTH2 } from "./verbs/oauth2.ts";
import { OFFLINE } from "./verbs/offline.ts";
import { PREBUILDS } from "./verbs/prebuilds.ts";
import { REPOSITORIES } from "./verbs/repositories.ts";
import { SECRETS } from "./verbs/secrets.ts";
import { OPERATING, RUNNING, VERSION, WITHIN, WORKSPACE_VERBS } from "./verbs/server.ts";
import { SHORTCUTS } from "./verbs/shortcuts.ts";
import { TASKS } from "./verbs/tasks.ts";
import { TEMPLATES } from "./verbs/templates.ts";
import { TOKENS, USERS } from "./verbs/users.ts";
import { OPEN, SCHEDULE, SHARE, SNAPSHOTS, TRASH, WORKSPACES } from "./verbs/workspaces.ts";

export const VERBS: readonly Verb[] = [
  ...RUNNING,
  ...SIGNING_IN,
  ...[
    ...SHORTCUTS,
    WORKSPACES,
    SCHEDULE,
    SHARE,
    SNAPSHOTS,
    HOME_BACKUPS,
    TRASH,
    OPEN,
    TEMPLATES,
    PREBUILDS,
    REPOSITORIES,
    TASKS,
    CHAT,
    LOGS,
    USERS,
    GROUPS,
    BUDGETS,
    TOKENS,
    SECRETS,
    ACCOUNT,
    OAUTH2,
    CONNECTIONS,
  ],
  ...NETWORK,
  ...WITHIN,
  ...WORKSPACE_VERBS,
  ...OPERATING,
  OFFLINE,
  {
    name: "completion",
    area: "start",
    help: "Print the completion script of a shell.",
    usage: "bash|zsh|fish",
    load: async () => ({ run: (await import("./completion/scripts.ts")).createCompletionVerb(VERBS) }),
  },
  VERSION,
];
