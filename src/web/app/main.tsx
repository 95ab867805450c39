// Begins the app.
import { render } from "preact";
import { App } from "./shell/app.tsx";
import { registerWorker } from "./shell/install.ts";

const root = document.getElementById("app");
if (root) render(<App />, root);
registerWorker();
