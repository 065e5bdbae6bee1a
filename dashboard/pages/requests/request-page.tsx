/** /requests/:id: one captured request, or two of them compared: `?compare=<id>`. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import { capturedRequestQuery } from "../../api/captured-request.ts";
import { usePathId, useQueryParameters } from "../../app/query-parameters.ts";
import { PageFrame } from "../../ui/page.tsx";
import { showInvisible } from "../../ui/text/visitor-text.tsx";
import { useLastFilter } from "./list/remembered-list.ts";
import { RequestComparison } from "./detail/comparison/request-comparison.tsx";
import { RequestDetail } from "./detail/request-detail.tsx";

/** In the title of the browser's tab. */
const PATH_SHOWN_CHARS = 100;

export function Page() {
  const id = usePathId();
  const { compare } = useQueryParameters();
  const { data: request } = useQuery(capturedRequestQuery(id));
  const backLink = (
    <Link to="/requests" search={{ ...useLastFilter() }} className="button">
      All requests
    </Link>
  );
  return compare === undefined ? (
    <PageFrame
      key={id}
      title="Request"
      documentTitle={request && formatTitle(request)}
      actions={backLink}
      width="wide"
    >
      <RequestDetail id={id} />
    </PageFrame>
  ) : (
    <PageFrame
      key={`${id} ${compare}`}
      title="Compare two requests"
      actions={backLink}
      width="wide"
    >
      <RequestComparison id={id} otherId={compare} />
    </PageFrame>
  );
}

function formatTitle({ method, path, status }: CaptureDetail): string {
  const shownPath = showInvisible(path.slice(0, PATH_SHOWN_CHARS).toWellFormed());
  return [method, shownPath, status ?? []].flat().join(" ");
}
