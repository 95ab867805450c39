// Validates fields of a new workspace that a schema cannot check alone (facts/platform 2.7, 3.1 and 3.2). Pure.

import { invalid, type Validation } from "#base/errors.ts";
import { findScheduleProblem } from "#base/schedule/cron.ts";
import { findTtlProblem, roundTtl } from "#schema/workspaces/schedule.ts";
import { type CreateWorkspace, NAME_PATTERN } from "#schema/workspaces/workspace.ts";

const RESERVED = ["new", "create"];
const name = new RegExp(NAME_PATTERN);

export type WorkspaceFields = {
  readonly name: string;
  readonly autostart_schedule: string | null;
  /** Null means the template's default. */
  readonly ttl_ms: number | null;
  readonly automatic_updates: "always" | "never";
};

/** Returns the validated fields. Throws 400 with one validation per invalid field. */
export const validateWorkspaceFields = (body: CreateWorkspace): WorkspaceFields => {
  const validations: Validation[] = [];
  const addProblem = (field: string, detail: string | undefined): void => {
    if (detail !== undefined) validations.push({ field, detail });
  };
  const schedule = body.autostart_schedule?.trim() || null;
  const updates = body.automatic_updates || "never";
  addProblem("name", findNameProblem(body.name));
  addProblem("schedule", schedule === null ? undefined : findScheduleProblem(schedule));
  addProblem("ttl_ms", body.ttl_ms ? findTtlProblem(body.ttl_ms) : undefined);
  if (updates !== "always" && updates !== "never") addProblem("automatic_updates", "must be always or never");
  const isBoth = body.template_id !== undefined && body.template_version_id !== undefined;
  const isNeither = body.template_id === undefined && body.template_version_id === undefined;
  // A repository has its own template if the caller names none.
  if (isBoth || (isNeither && body.repository === undefined)) {
    const detail = "exactly one of template_id and template_version_id must be given";
    addProblem("template_id", detail);
    addProblem("template_version_id", detail);
  }
  if (validations.length > 0) throw invalid("Validation failed.", validations);
  return {
    name: body.name,
    autostart_schedule: schedule,
    ttl_ms: roundTtl(body.ttl_ms),
    automatic_updates: updates as "always" | "never",
  };
};

/** Returns why this is not a valid workspace name; undefined if it is. */
export const findNameProblem = (text: string): string | undefined => {
  if (text.length < 1 || text.length > 32) return "must have 1 to 32 characters";
  if (!name.test(text)) return "must contain only letters and digits, with single hyphens between them";
  return RESERVED.includes(text.toLowerCase()) ? "is reserved" : undefined;
};
