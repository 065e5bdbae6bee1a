/** /receivers: the webhook receivers of the organization. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Webhook receivers">{null}</PageFrame>;
}
