/** /requests/:id: one captured request, or two of them compared: `?compare=<id>`. */
import { usePathId, useQueryParameters } from "../../app/query-parameters.ts";
import { PageFrame } from "../../ui/page.tsx";
import { RequestComparison } from "./detail/comparison/request-comparison.tsx";
import { RequestDetail } from "./detail/request-detail.tsx";

export function Page() {
  const id = usePathId();
  const { compare } = useQueryParameters();
  return compare === undefined ? (
    <PageFrame key={id} title="Request" width="wide">
      <RequestDetail id={id} />
    </PageFrame>
  ) : (
    <PageFrame key={`${id} ${compare}`} title="Compare two requests" width="wide">
      <RequestComparison id={id} otherId={compare} />
    </PageFrame>
  );
}
