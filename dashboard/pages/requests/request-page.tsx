/** /requests/:id: one captured request. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Request">{null}</PageFrame>;
}
