/** The tenant that is attacked, in a process of its own: an agent, and the local server behind it. */
import { expose } from "../../agent/expose.ts";
import { startAbusedOrigin } from "./origin.ts";

export interface AttackedTenantPlan {
  serverUrl: string;
  /** In base64. */
  token: string;
  subdomain: string;
}

export interface AttackedTenant {
  tunnelId: string;
}

async function serve({ serverUrl, token, subdomain }: AttackedTenantPlan): Promise<void> {
  const { port } = await startAbusedOrigin();
  const bytes = Buffer.from(token, "base64");
  const { tunnelId } = await expose({ server: serverUrl, token: bytes, port, subdomain });
  process.send?.({ tunnelId } satisfies AttackedTenant);
}

process.once("message", (plan) => void serve(plan as AttackedTenantPlan));
process.once("disconnect", () => process.exit());
