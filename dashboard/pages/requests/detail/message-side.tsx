/** The headers and the body of the request, or of the response. */
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { Section } from "../../../ui/section.tsx";

export interface MessageSideProps {
  request: CaptureDetail;
  side: "request" | "response";
}

export function MessageSide({ request, side }: MessageSideProps) {
  const headers = request[`${side}_headers`];
  return (
    <Section title={side === "request" ? "Request" : "Response"}>
      <dl>
        {Object.entries(headers).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <pre>{atob(request[`${side}_body`]).slice(0, 10_000)}</pre>
    </Section>
  );
}
