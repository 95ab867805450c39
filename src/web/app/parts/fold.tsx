// A collapsible section: a summary with an arrow that turns when it opens.
import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";

type FoldProps = {
  readonly summary: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
};

export const Fold = ({ summary, class: more, children }: FoldProps) => (
  <details class={["fold", more].filter(Boolean).join(" ")}>
    <summary>
      <Icon name="chev" small />
      {summary}
    </summary>
    {children}
  </details>
);
