// The layout of a page: a header with title and actions, and the content below.
import type { ComponentChildren } from "preact";
import { useTitle } from "../data/branding.ts";
import { CommandButton } from "../parts/as-command.tsx";

type FrameProps = {
  /** The title of the window and of the header. */
  readonly title: string;
  /** Breadcrumbs before the title. */
  readonly crumbs?: readonly { readonly label: string; readonly href?: string }[];
  /** Shown next to the title: a count, a badge. */
  readonly note?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** Content below the header. Wrap text pages in `<div class="page">`. */
  readonly children: ComponentChildren;
};

export const Frame = ({ title, crumbs = [], note, actions, children }: FrameProps) => {
  useTitle(title);
  return (
    <>
      <header class="bar">
        {crumbs.length > 0 && (
          <p class="crumb">
            {crumbs.map(({ label, href }) => (
              <span key={label}>
                {href ? <a href={href}>{label}</a> : label} <span class="dim">/</span>{" "}
              </span>
            ))}
          </p>
        )}
        <h1>{title}</h1>
        {note}
        <span class="push line">
          <CommandButton />
          {actions}
        </span>
      </header>
      {children}
    </>
  );
};
