/** Everything about one captured request: on a page of its own, or beside the list of requests. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import type { ReplayResult } from "../../../../protocol/schemas/inspector/replays.ts";
import { capturedRequestQuery } from "../../../api/captured-request.ts";
import { tunnelsQuery } from "../../../api/tunnels.ts";
import { useMe } from "../../../app/session-state.ts";
import { MissingResource } from "../../../ui/feedback/missing-resource.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { Skeleton } from "../../../ui/feedback/skeleton.tsx";
import { MessageSide } from "./message-side.tsx";
import { ReplayComparison } from "./replay/replay-comparison.tsx";
import { RequestActions } from "./request-actions.tsx";
import { RequestSummary } from "./request-summary.tsx";
import { StreamTimeline } from "./stream/stream-timeline.tsx";
import "./detail.css";

const SKELETON_LINES = 16;

interface RequestDetailProps {
  id: string;
  /** Beside the list of requests. */
  isCompact?: boolean;
}

/** Its columns depend on its own width, so that it fits a page, a panel and the dock. */
export function RequestDetail({ id, isCompact = false }: RequestDetailProps) {
  const query = useQuery(capturedRequestQuery(id));
  // The summary begins with the URL of the tunnel.
  const { isLoading: areTunnelsLoading } = useQuery(tunnelsQuery);
  return (
    <div className="request-detail">
      <QueryContent query={query} lines={SKELETON_LINES} missing={<MissingRequest id={id} />}>
        {(request) =>
          areTunnelsLoading ? (
            <Skeleton lines={SKELETON_LINES} />
          ) : (
            <LoadedRequest key={id} request={request} isCompact={isCompact} />
          )
        }
      </QueryContent>
    </div>
  );
}

function MissingRequest({ id }: { id: string }) {
  const { inspector_retention_days: days } = useMe().entitlements;
  return (
    <MissingResource id={id} kind="request" title="This request is not stored">
      <p>
        Requests are stored for {days} days, and at most 64 MiB of them for each tunnel. They are
        also deleted with their tunnel.
      </p>
    </MissingResource>
  );
}

interface LoadedRequestProps {
  request: CaptureDetail;
  isCompact: boolean;
}

function LoadedRequest({ request, isCompact }: LoadedRequestProps) {
  const [replay, setReplay] = useState<ReplayResult | null>(null);
  const replayed = useQuery({
    ...capturedRequestQuery(replay?.id ?? ""),
    enabled: replay !== null,
  });
  // In little space, the headers alone would be above the response.
  const isResponseFirst = isCompact && request.request_size === 0;
  const requestSide = (
    <MessageSide title="Request" request={request} side="request" isCompact={isCompact} />
  );
  const responseSide = (
    <MessageSide title="Response" request={request} side="response" isCompact={isCompact} />
  );
  const hasStream = request.frames_total > 0 || request.events_total > 0;
  return (
    <>
      <RequestSummary
        request={request}
        actions={<RequestActions request={request} onReplayed={setReplay} />}
      />
      {replay !== null && (
        <ReplayComparison replay={replay} request={request} onClose={() => setReplay(null)} />
      )}
      {hasStream && <StreamTimeline request={request} />}
      <div className="sides">
        {replay !== null && (
          <>
            {responseSide}
            <QueryContent query={replayed} lines={8}>
              {(again) => (
                <MessageSide
                  title="Response to the replay"
                  request={again}
                  side="response"
                  isCompact={isCompact}
                />
              )}
            </QueryContent>
          </>
        )}
        {replay === null && isResponseFirst && responseSide}
        {requestSide}
        {replay !== null && replayed.data !== undefined && (
          <MessageSide
            title="Request of the replay"
            request={replayed.data}
            side="request"
            isCompact={isCompact}
          />
        )}
        {replay === null && !isResponseFirst && responseSide}
      </div>
    </>
  );
}
