// Wire shapes of repository prebuilds: repositories whose image is built in advance for the newest commit of the default branch.
import { type Static, Type as t } from "@sinclair/typebox";
import { MAX_ADDRESS } from "#base/links/repository-address.ts";
import { optionalTime, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";

/** Maximum number of prebuilds in a deployment. */
export const MAX_REPOSITORY_PREBUILDS = 200;
/** Default number of images kept per prebuild. */
export const DEFAULT_KEPT_IMAGES = 3;

export const REPOSITORY_PREBUILD_STATES = ["waiting", "building", "ready", "failed"] as const;
export type RepositoryPrebuildStatus = (typeof REPOSITORY_PREBUILD_STATES)[number];

const interval = t.Integer({
  minimum: 0,
  maximum: 720,
  description: "How often to check for a new commit, in hours. 0 (default) builds only after a push or manually.",
});
const keptImages = t.Integer({ minimum: 1, maximum: 20, description: "How many images to keep; default 3." });

export const NewRepositoryPrebuild = namedObject("NewRepositoryPrebuild", {
  url: lineText({
    minLength: 1,
    maxLength: MAX_ADDRESS,
    description: "A link to the repository, whose default branch is built.",
  }),
  organization_id: t.Optional(uuid("The ID of the organization; default: the caller's default organization.")),
  interval_hours: t.Optional(interval),
  keep: t.Optional(keptImages),
});
export type NewRepositoryPrebuild = Static<typeof NewRepositoryPrebuild>;

export const RepositoryPrebuild = namedObject("RepositoryPrebuild", {
  id: uuid(),
  organization_id: uuid(),
  owner_id: uuid("The ID of the user whose linked account reads the repository."),
  owner_name: t.String({ description: "The username of that user." }),
  url: t.String({ description: "The URL of the repository, whose default branch is built." }),
  name: t.String({ description: "The last part of the repository's path." }),
  interval_hours: interval,
  keep: keptImages,
  webhook_url: t.String({ description: "The webhook URL, to which the repository's host sends push events." }),
  status: oneOf(
    REPOSITORY_PREBUILD_STATES,
    "The status of the newest image. `waiting`: its build has not started. `failed`: the last build failed, for the reason in `error`.",
  ),
  error: t.String({ description: "Why the last build failed; empty if it succeeded." }),
  commit: t.String({ description: "The commit of the last built image; empty before the first build." }),
  images: t.Integer({ minimum: 0, description: "The number of images that are kept." }),
  log: t.String({ description: "The end of the last build's log." }),
  built_at: optionalTime("When the last build ended."),
  next_at: optionalTime("When the repository is next checked without a push."),
  created_at: time(),
});
export type RepositoryPrebuild = Static<typeof RepositoryPrebuild>;

export const CreatedRepositoryPrebuild = namedObject("CreatedRepositoryPrebuild", {
  prebuild: RepositoryPrebuild,
  secret: t.String({ description: "The webhook's secret. It is returned only once." }),
});
export type CreatedRepositoryPrebuild = Static<typeof CreatedRepositoryPrebuild>;
