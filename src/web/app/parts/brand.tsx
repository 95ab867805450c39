// The deployment's logo, or the default one.
import { useSignal } from "@preact/signals";
import { branding } from "../data/branding.ts";

export const Brand = ({ class: more }: { class?: string }) => {
  const brokenLogo = useSignal("");
  const { logo } = branding.value;
  const className = more ? `i ${more}` : "i";
  if (logo !== "" && brokenLogo.value !== logo) {
    return (
      <img
        class={className}
        src={logo}
        alt=""
        onError={() => {
          brokenLogo.value = logo;
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
