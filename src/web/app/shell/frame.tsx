// The frame of a page: its bar with title and actions, and the page below.
import type { ComponentChildren } from "preact";
import { useTitle } from "../data/face.ts";
import { CommandButton } from "../parts/as-command.tsx";

type FrameProps = {
  /** The title of the window, and of the bar unless `crumbs` say more. */
  readonly title: string;
  /** Links that lead here, before the title. */
  readonly crumbs?: readonly { readonly label: string; readonly href?: string }[];
  /** Alongside the title: a count, a mark. */
  readonly note?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** Below the bar; wrap what reads like a page in `<div class="page">`. */
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
