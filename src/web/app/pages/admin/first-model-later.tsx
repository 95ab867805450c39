// Loads the offer of a first model separately, so that the page does not wait for it.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import { showError } from "../../shell/toasts.tsx";

const loaded = signal<ComponentType | undefined>(undefined);

const load = async (): Promise<void> => {
  loaded.value = (await loadCode(() => import("./first-model.tsx"))).FirstModel;
};

export const FirstModel = () => {
  useEffect(() => void (loaded.peek() ?? load().catch(showError)), []);
  const Loaded = loaded.value;
  return Loaded ? <Loaded /> : null;
};
