/** The entry of the dashboard. */
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { writeInvitation } from "./app/invitation-token.ts";
import { startSession } from "./app/session-state.ts";
import { applyStoredTheme } from "./app/theme.ts";
import { takeUrlParameters } from "./app/url-parameters.ts";
import "./styles/main.css";

applyStoredTheme();
const arrival = takeUrlParameters();
if (location.pathname === "/invitation" && arrival.token !== null) writeInvitation(arrival.token);
createRoot(document.getElementById("root")!).render(<App linkToken={arrival.token} />);
void startSession(arrival);
