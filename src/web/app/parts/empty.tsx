// An empty state: what is missing, what it is for, the next step. Also used for errors.
import type { ComponentChildren } from "preact";
import { formatError } from "../data/api.ts";
import type { IconName } from "../icons.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

type EmptyProps = {
  readonly icon: IconName;
  readonly title: string;
  readonly text?: ComponentChildren;
  /** One primary next step, and at most one other. */
  readonly children?: ComponentChildren;
};

export const Empty = ({ icon, title, text, children }: EmptyProps) => (
  <div class="empty">
    <Icon name={icon} />
    <h2>{title}</h2>
    {text && <p>{text}</p>}
    {children && <div class="acts">{children}</div>}
  </div>
);

/** Shown instead of content that could not be loaded. */
export const Failed = ({ title, error, reload }: { title: string; error: unknown; reload: () => unknown }) => (
  <div role="alert">
    <Empty icon="warn" title={title} text={formatError(error)}>
      <Button look="primary" onPress={reload}>
        Retry now
      </Button>
    </Empty>
  </div>
);
