// Warns that another version was promoted while the user was editing.
import type { ComponentChildren } from "preact";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";

type OtherVersionProps = {
  readonly template: Template;
  /** The version that the user's changes are based on. */
  readonly baseVersion: TemplateVersion;
  readonly active: TemplateVersion;
  readonly children?: ComponentChildren;
};

export const OtherVersionNotice = ({ template, baseVersion, active, children }: OtherVersionProps) => (
  <div class="banner box attn" role="status">
    <span>
      {active.created_by.username}'s {active.name} became the active version while you were editing. Your changes are
      based on {baseVersion.name}.
    </span>
    <span class="push line">
      <a
        class="btn sm"
        href={`/templates/${template.id}/versions?${new URLSearchParams({ from: baseVersion.id, to: active.id })}`}
        target="_blank"
        rel="noreferrer"
      >
        Compare
      </a>
      {children}
    </span>
  </div>
);
