/** The entry of the dashboard. */
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { writeInvitation } from "./app/invitation-token.ts";
import { reloadAfterFailures } from "./app/query-client.ts";
import { initializeSession } from "./app/session-state.ts";
import { applyStoredTheme } from "./app/theme.ts";
import { takeOneTimeParameters } from "./app/one-time-parameters.ts";
import "./styles/main.css";

applyStoredTheme();
const parameters = takeOneTimeParameters();
const { token } = parameters;
if (location.pathname === "/invitation" && token !== null) writeInvitation(token);
createRoot(document.getElementById("root")!).render(<App linkToken={token} />);
reloadAfterFailures();
void initializeSession(parameters);
