/** /tunnels: the tunnels of the organization. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Tunnels">{null}</PageFrame>;
}
