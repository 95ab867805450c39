// The deployment's logo, or the default one.
import { useSignal } from "@preact/signals";
import { face } from "../data/branding.ts";

export const Brand = ({ class: more }: { class?: string }) => {
  const isBroken = useSignal("");
  const { logo } = face.value;
  const className = more ? `i ${more}` : "i";
  if (logo !== "" && isBroken.value !== logo) {
    return (
      <img
        class={className}
        src={logo}
        alt=""
        onError={() => {
          isBroken.value = logo;
        }}
      />
    );
  }
  return (
    <svg class={className} aria-hidden="true">
      <use href="#i-brand" />
    </svg>
  );
};
