/** The account that the screen shows: whose token serves the tunnels. */
import { z } from "zod";
import type { ServiceApi } from "../service-api.ts";
import { escapeControls } from "../../shared/text/escape-controls.ts";

/** Lenient, because the server may be older or newer than this agent. */
const TokenAccount = z.object({
  name: z.string(),
  organization: z.object({ name: z.string(), plan: z.string().optional() }),
});

/** @returns such as `Acme, pro plan, token laptop`; undefined when the server does not report it. */
export async function findAccount(api: ServiceApi): Promise<string | undefined> {
  try {
    const { signal } = new AbortController();
    const token = await api.call(TokenAccount, "GET", "/agent/token", { signal });
    const { name, plan } = token.organization;
    const parts = [name, ...(plan === undefined ? [] : [`${plan} plan`]), `token ${token.name}`];
    return escapeControls(parts.join(", "));
  } catch {
    // The tunnel itself reports what is wrong with the server or the token.
    return undefined;
  }
}
