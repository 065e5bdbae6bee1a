/** /networks/:id: one private network. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Network">{null}</PageFrame>;
}
