/** /requests/:id: one captured request. */
import { usePathId } from "../../app/search.ts";
import { PageFrame } from "../../ui/page.tsx";
import { RequestDetail } from "./detail/request-detail.tsx";

export function Page() {
  const id = usePathId();
  return (
    <PageFrame title="Request" width="wide">
      <RequestDetail key={id} id={id} />
    </PageFrame>
  );
}
