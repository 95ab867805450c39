// The deployment's appearance: name, picture and announcements, set by an owner (rules DP-10, DP-11).
import { forbidden } from "#base/errors.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findSetting, upsertSetting } from "#db/settings.ts";
import type { Appearance, UpdateAppearance } from "#schema/deployment/appearance.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canChangeDeployment } from "../access.ts";
import type { DomainContext } from "../context.ts";

const SETTING = "appearance";
const NAME = "Slipway";

type StoredAppearance = Required<UpdateAppearance>;
type Deps = Pick<DomainContext, "store" | "accessUrl">;

const DEFAULTS: StoredAppearance = {
  application_name: "",
  logo_url: "",
  announcement_banners: [],
  service_banner: { enabled: false, message: "", background_color: "" },
};

const readStored = async ({ store }: Pick<Deps, "store">): Promise<StoredAppearance> => {
  const found = await store.get(findSetting({ key: SETTING }));
  return found ? { ...DEFAULTS, ...(JSON.parse(found.value) as Partial<StoredAppearance>) } : DEFAULTS;
};

export const readAppearance = async (ctx: Deps): Promise<Appearance> => {
  const stored = await readStored(ctx);
  return {
    ...stored,
    application_name: stored.application_name || NAME,
    docs_url: new URL("/swagger", ctx.accessUrl).href,
    support_links: [],
  };
};

/** Omitted members are unchanged. Rejects with 403. */
export const changeAppearance = async (
  ctx: DomainContext,
  caller: UserCaller,
  input: UpdateAppearance,
): Promise<Appearance> => {
  if (!canChangeDeployment(caller)) throw forbidden("Only owners can change the appearance.");
  const before = await readStored(ctx);
  const changes = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const after: StoredAppearance = { ...before, ...changes };
  if (!Bun.deepEquals(before, after)) {
    const base = { now: ctx.clock.now(), action: "write", resource_type: "appearance", target: "appearance" } as const;
    await ctx.store.commit([
      upsertSetting({ key: SETTING, value: JSON.stringify(after) }),
      insertAudit({ ...base, before, after }),
    ]);
  }
  return readAppearance(ctx);
};
