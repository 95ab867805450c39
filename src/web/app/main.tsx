// Begins the app.
import { render } from "preact";
import { App } from "./shell/app.tsx";

const root = document.getElementById("app");
if (root) render(<App />, root);
