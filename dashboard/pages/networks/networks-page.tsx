/** /networks: the private networks of the organization. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Networks">{null}</PageFrame>;
}
