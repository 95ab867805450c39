// What this node does for the others of a cluster in which all work.
import type { Usage } from "#actors/usage/usage.ts";
import type { Clock } from "#base/clock.ts";
import type { Links } from "#domain/external-auth/links.ts";
import type { AgentDialer } from "#src/wire/index.ts";
import { answerFarActors, type Far } from "./far-actors.ts";
import { answerFarDials, type FarAgents } from "./far-agents.ts";
import { answerFarRefreshes } from "./far-refreshes.ts";
import { shareUse } from "./far-views.ts";

type Directories = Parameters<typeof answerFarActors>[1];

/** The directories by the names that contexts give them. */
type Offers = {
  readonly clock: Clock;
  readonly usage: Usage;
  readonly dialer: AgentDialer;
  readonly links: Links;
  readonly agents: Directories["agent"];
  readonly chats: Directories["chat"];
  readonly dryRuns: Directories["job"];
  readonly versions: Directories["template_version"];
  readonly workspaces: Directories["workspace"];
};

export const answerOthers = (far: Far & FarAgents, offers: Offers): void => {
  const { agents: agent, chats: chat, dryRuns: job, versions: template_version, workspaces: workspace } = offers;
  answerFarDials(far, offers.dialer);
  answerFarActors(far, { agent, chat, job, template_version, workspace });
  answerFarRefreshes(far, offers.links);
  shareUse(far, offers.clock, offers.usage);
};
