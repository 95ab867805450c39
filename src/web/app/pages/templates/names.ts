// Templates that pages know by name.
import type { Template } from "#schema/templates/template.ts";

/** The name prefix of the starter templates with VS Code in the browser. */
export const EDITOR_TEMPLATE = "code-server";

/** True if the template is such a starter and still has its original name. */
export const isEditorTemplate = ({ name }: Template): boolean =>
  name === EDITOR_TEMPLATE || name.startsWith(`${EDITOR_TEMPLATE}-`);

/** Returns the address of the form for a workspace of the template. */
export const toNewWorkspaceUrl = ({ name }: Template): string => `/new?template=${encodeURIComponent(name)}`;
