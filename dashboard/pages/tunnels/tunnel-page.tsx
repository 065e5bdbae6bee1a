/** /tunnels/:id: one tunnel. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Tunnel">{null}</PageFrame>;
}
