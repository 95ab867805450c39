// Starts the app.
import { render } from "preact";
import { reportRendered } from "./data/first-paint.ts";
import { App } from "./shell/app.tsx";
import { waitForContent } from "./shell/begin.ts";
import { registerWorker } from "./shell/install.ts";

const root = document.getElementById("app");
if (root)
  void waitForContent(location.pathname).then(() => {
    render(<App />, root);
    reportRendered();
  });
registerWorker();
