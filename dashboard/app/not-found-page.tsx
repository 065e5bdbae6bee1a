/** A path without a page. */
import { Link } from "@tanstack/react-router";
import { Step } from "../ui/step.tsx";

export function NotFoundPage() {
  return (
    <Step title="There is no page at this address">
      <p>The address may be misspelled, or the page may have been removed.</p>
      <div className="actions">
        <Link to="/" className="button primary">
          Go to the overview
        </Link>
      </div>
    </Step>
  );
}
