/** The hint that follows the API's refusal of something that the plan does not include (402). */
import { RequestError } from "../../api/request.ts";
import { useSession } from "../../app/session-state.ts";

/** Nothing for other errors. A link without the router, because notifications are outside of it. */
export function UpgradeHint({ error }: { error: unknown }) {
  const session = useSession();
  if (!(error instanceof RequestError) || error.code !== "upgrade_required") return null;
  if (session.phase !== "signed-in") return null;
  if (session.me.billing_mode === "none") return <> The operator of this server sets the plan.</>;
  if (session.me.active_org.role !== "owner") {
    return <> An owner of the organization can change the plan.</>;
  }
  return (
    <>
      {" "}
      <a href="/billing">See the plans</a>
    </>
  );
}
