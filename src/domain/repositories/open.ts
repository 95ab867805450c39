// Opens the repositories that users may name, with what each user may reach.
import { join } from "node:path";
import { type Config, isUsedOnlyLocally } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { Outbound } from "#base/outbound.ts";
import type { Store } from "#db/engine/store.ts";
import { findUser } from "#db/users/users.ts";
import { MAX_FEATURE_BYTES } from "#src/git/feature-registry.ts";
import { findKeyForRepository, openDeployKey } from "../users/deploy-keys.ts";
import { Repositories, type RepositoryDeps } from "./repositories.ts";

type OpenDeps = Pick<RepositoryDeps, "clock" | "links" | "env"> & {
  readonly config: Config;
  readonly store: Store;
  readonly encryption: Encryption;
};

/** Returns the repositories that users may name. Any member can, and only owners may reach private addresses of this machine. */
export const openRepositories = ({ config, clock, store, encryption, links, env }: OpenDeps): Repositories => {
  const limits = { clock, allowed: config.allowed_private_networks, max_bytes: MAX_FEATURE_BYTES };
  return new Repositories({
    clock,
    links,
    env,
    outbound: new Outbound(limits),
    ownersOutbound: new Outbound({ ...limits, reaches_private: isUsedOnlyLocally(config) }),
    isOwner: async (user_id) => (await store.get(findUser({ id: user_id })))?.roles.includes("owner") ?? false,
    async deployKey(user_id, url) {
      const key = await findKeyForRepository({ store, encryption }, user_id, url);
      return key && { ssh_url: key.ssh_url, private_key: openDeployKey({ encryption }, key) };
    },
    root: join(config.data_dir, "repositories"),
  });
};
