// Which actor a timer is for.
import { FORK, type ForkKeeper } from "#actors/forks/keeper.ts";
import { IMAGE_PREBUILD, type ImagePrebuildKeeper } from "#actors/image-prebuilds/keeper.ts";
import type { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import { TASK, type TaskKeeper } from "#actors/tasks/keeper.ts";
import { DRY_RUN } from "#actors/template-version/dry-run-actor.ts";
import { TRIAL, type TrialKeeper } from "#actors/trials/keeper.ts";
import { EMPTY_TRASH } from "#actors/workspace/trash.ts";
import type { Timer } from "#db/engine/timers.ts";
import type { DomainContext } from "#domain/context.ts";

type Parts = Pick<DomainContext, "chats" | "diffs" | "versions" | "dryRuns" | "workspaces"> & {
  readonly prebuilds: PrebuildKeeper;
  readonly imagePrebuilds: ImagePrebuildKeeper;
  readonly tasks: TaskKeeper;
  readonly forks: ForkKeeper;
  readonly trials: TrialKeeper;
};

export const deliver = async (parts: Parts, timer: Timer): Promise<void> => {
  const { actor, actor_id, name } = timer;
  if (actor === "chat") await parts.chats.ask(actor_id, "deadlinePassed", {});
  if (actor === "chat_diff") await parts.diffs.due(actor_id);
  if (actor === "template_version") await parts.versions.ask(actor_id, "reap", {});
  if (actor === DRY_RUN) await parts.dryRuns.ask(actor_id, "reap", {});
  if (actor === "workspace") await tellWorkspace(parts, timer);
  if (actor === TASK) await parts.tasks.due(actor_id, name);
  if (actor === FORK) await parts.forks.due(actor_id);
  if (actor === IMAGE_PREBUILD) await parts.imagePrebuilds.due(actor_id, timer.due);
  if (actor === TRIAL) await parts.trials.due(actor_id);
  if (actor === "prebuilds") await parts.prebuilds.reconcile(actor_id);
};

const tellWorkspace = async ({ workspaces }: Parts, { actor_id, name }: Timer): Promise<void> => {
  if (name === "reap") await workspaces.ask(actor_id, "reap", {});
  if (name === EMPTY_TRASH) await workspaces.ask(actor_id, "emptyTrash", {});
  if (name === "schedule") await workspaces.ask(actor_id, "runSchedule", {});
  if (name === "reset_used" || name === "reset_dormant") await workspaces.ask(actor_id, "resetTimes", { name });
};
