/** Everything about one captured request: on a page of its own, or beside the list of requests. */
import { useQuery } from "@tanstack/react-query";
import { capturedRequestQuery } from "../../../api/captured-request.ts";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { RequestSummary } from "./request-summary.tsx";
import { MessageSide } from "./message-side.tsx";
import "./detail.css";

export interface RequestDetailProps {
  id: string;
}

/** Its layout depends on its own width, so that it fits a page, a panel and the dock. */
export function RequestDetail({ id }: RequestDetailProps) {
  const query = useQuery(capturedRequestQuery(id));
  return (
    <div className="request-detail">
      <QueryContent query={query} lines={12}>
        {(request) => (
          <>
            <RequestSummary request={request} />
            <div className="sides">
              <MessageSide request={request} side="request" />
              <MessageSide request={request} side="response" />
            </div>
          </>
        )}
      </QueryContent>
    </div>
  );
}
