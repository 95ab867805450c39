// Describes where the workspaces of a template run and how many people use it. Pure.
import type { Template } from "#schema/templates/template.ts";

const PLACES: Readonly<Record<string, string>> = {
  local: "the server's machine",
  docker: "Docker",
  terraform: "Terraform",
  external: "a worker",
};

/** Returns the label for the template's provisioner, or the provisioner's name if it has no label. */
export const formatRunsOn = ({ provisioner }: Pick<Template, "provisioner">): string =>
  PLACES[provisioner] ?? provisioner;

/** Describes how many people have a workspace of the template. */
export const formatUse = ({ active_user_count: count }: Pick<Template, "active_user_count">): string =>
  count === 0 ? "No workspaces yet." : count === 1 ? "Used by 1 person." : `Used by ${count} people.`;
