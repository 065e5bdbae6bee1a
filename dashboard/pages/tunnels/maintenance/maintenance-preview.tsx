/** A preview of the maintenance page and of the JSON, which the edge sends to visitors (workers/edge/error-pages.ts). */
import { Section } from "../../../ui/section.tsx";

/** The texts of the edge, which a test compares with these. */
const TITLE = "Down for maintenance";
const DEFAULT_MESSAGE = "This tunnel is temporarily closed by its owner.";
const RETRY_SECONDS = 30;

interface MaintenancePreviewProps {
  address: string;
  /** Empty: the default message. */
  message: string;
}

export function MaintenancePreview({ address, message }: MaintenancePreviewProps) {
  const shown = message === "" ? DEFAULT_MESSAGE : message;
  const json = { error: "maintenance", message: shown, retry_after_seconds: RETRY_SECONDS };
  return (
    <Section title="What visitors see">
      <figure className="page-preview" aria-label="The page for browsers">
        <figcaption>{address}</figcaption>
        <div>
          <p className="page-preview-title">{TITLE}</p>
          <p>
            <bdi>{shown}</bdi>
          </p>
          <p className="hint">
            503 <code>maintenance</code> · Underpass
          </p>
        </div>
      </figure>
      <p className="hint">Programs get JSON instead:</p>
      <pre className="json-preview" tabIndex={0} aria-label="The response for programs">
        {JSON.stringify(json, null, 2)}
      </pre>
    </Section>
  );
}
