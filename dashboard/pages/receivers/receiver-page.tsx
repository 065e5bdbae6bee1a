/** /receivers/:id: one webhook receiver and its deliveries. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Webhook receiver">{null}</PageFrame>;
}
