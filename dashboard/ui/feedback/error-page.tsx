/** A page that could not be loaded at all. */
import { ErrorNotice, type ErrorNoticeProps } from "./error-notice.tsx";
import { Step } from "../step.tsx";

export function ErrorPage(props: ErrorNoticeProps) {
  return (
    <Step title="Something went wrong">
      <ErrorNotice {...props} />
    </Step>
  );
}
