// Wire shapes of dry runs of a template version (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";
import { newParameterValues } from "./build.ts";

export const CreateDryRun = namedObject("CreateDryRun", {
  workspace_name: t.Optional(
    t.String({
      pattern: "^$|^[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*$",
      maxLength: 32,
      description: "The name of the workspace. It is not created.",
    }),
  ),
  rich_parameter_values: newParameterValues,
  template_version_preset_id: t.Optional(
    t.String({ format: "uuid", description: "The ID of a preset of the version, whose values apply." }),
  ),
});
export type CreateDryRun = Static<typeof CreateDryRun>;
