// The page before the app: one column in the middle.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Icon } from "../../parts/icon.tsx";

export const Door = ({ title, children }: { title: string; children: ComponentChildren }) => {
  useEffect(() => {
    document.title = `${title} · Slipway`;
  }, [title]);
  return (
    <main class="center">
      <div class="login stack loose">
        <div class="line">
          <svg class="i logo" aria-hidden="true">
            <use href="#i-brand" />
          </svg>
          <h1>{title}</h1>
        </div>
        {children}
      </div>
    </main>
  );
};

/** What went wrong, above the button that is pressed again. */
export const DoorProblem = ({ text }: { text: string }) => (
  <p class="problem t-bad line" role="alert">
    {text !== "" && <Icon name="warn" />}
    {text}
  </p>
);
