// Loads the offer of a first model separately, so that the page does not wait for it.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { loadCode } from "../../data/load-code.ts";
import { showError } from "../../shell/toasts.tsx";

const loadedComponent = signal<ComponentType | undefined>(undefined);

const loadComponent = async (): Promise<void> => {
  loadedComponent.value = (await loadCode(() => import("./first-model.tsx"))).FirstModel;
};

export const FirstModel = () => {
  useEffect(() => void (loadedComponent.peek() ?? loadComponent().catch(showError)), []);
  const Loaded = loadedComponent.value;
  return Loaded ? <Loaded /> : null;
};
