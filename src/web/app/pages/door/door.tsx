// The frame of pages outside the app, such as sign-in: one centered column.
import type { ComponentChildren } from "preact";
import { useTitle } from "../../data/branding.ts";
import { Brand } from "../../parts/brand.tsx";
import { Icon } from "../../parts/icon.tsx";

export const SignInFrame = ({ title, children }: { title: string; children: ComponentChildren }) => {
  useTitle(title);
  return (
    <main class="center">
      <div class="login stack loose">
        <div class="line">
          <Brand class="logo" />
          <h1>{title}</h1>
        </div>
        {children}
      </div>
    </main>
  );
};

/** The error, above the button that retries. */
export const SignInProblem = ({ text }: { text: string }) => (
  <p class="problem t-bad line" role="alert">
    {text !== "" && <Icon name="warn" />}
    {text}
  </p>
);
