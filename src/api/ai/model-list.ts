// Formats the model names a caller may use as the model list of each dialect. Pure.
import type { Dialect } from "#src/llm/gateway/endpoint.ts";

/** Dialects require a time; names have none. */
const EPOCH = "1970-01-01T00:00:00Z";

/** Returns the list. Names with `*` are patterns, not models, and are left out. */
export const presentModelList = (dialect: Dialect, names: readonly string[]): object => {
  const models = names.filter((name) => !name.includes("*"));
  if (dialect === "anthropic") {
    const data = models.map((id) => ({ type: "model", id, display_name: id, created_at: EPOCH }));
    return { data, has_more: false, first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
  }
  if (dialect === "google") {
    const methods = ["generateContent", "streamGenerateContent", "countTokens"];
    return {
      models: models.map((name) => ({
        name: `models/${name}`,
        displayName: name,
        supportedGenerationMethods: methods,
      })),
    };
  }
  return { object: "list", data: models.map((id) => ({ id, object: "model", created: 0, owned_by: "slipway" })) };
};
