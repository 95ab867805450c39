// Language model providers and their models. There are few, so lists are read completely.
import { asc, eq } from "drizzle-orm";
import { build, eqParam, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { model_configs, model_providers } from "../schema/models.ts";

export type ModelProviderRow = typeof model_providers.$inferSelect;
export type ModelConfigRow = typeof model_configs.$inferSelect;

/** Oldest first. */
export const listModelProviders = query(
  build
    .select()
    .from(model_providers)
    .where(eq(model_providers.deleted, false))
    .orderBy(asc(model_providers.created_at), asc(model_providers.id)),
);

/** Oldest first. */
export const listModelConfigs = query(
  build
    .select()
    .from(model_configs)
    .where(eq(model_configs.deleted, false))
    .orderBy(asc(model_configs.created_at), asc(model_configs.id)),
);

/** The display name of a model, which may be deleted. Parameters: {id}. */
export const findModelName = query(
  build.select({ display_name: model_configs.display_name }).from(model_configs).where(eqParam(model_configs.id)),
);

export const insertModelProvider = insertInto(model_providers);
export const updateModelProvider = updateBy(model_providers, model_providers.id);
export const insertModelConfig = insertInto(model_configs);
export const updateModelConfig = updateBy(model_configs, model_configs.id);

/** Unsets the default model. The same batch sets another. */
export const clearDefaultModel = statement<Record<string, never>>(
  build.update(model_configs).set({ is_default: false }).where(eq(model_configs.is_default, true)),
);
