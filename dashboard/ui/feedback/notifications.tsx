/** Short messages about an action, in a corner of the page. */
import { Toast } from "@base-ui/react/toast";
import { getUserMessage } from "../../api/request.ts";
import { ClipboardError } from "../text/clipboard.ts";
import { UpgradeHint } from "./upgrade-hint.tsx";

/** Long enough to read the message and to reach its button. */
const WITH_ACTION_SHOWN_MS = 15_000;

const manager = Toast.createToastManager();

/** A button beside the message, such as one that takes the change back. */
interface NotificationAction {
  label: string;
  act: () => void;
}

/**
 * @param subject names what the message is about: the next message about the same subject replaces this one.
 */
export function notify(message: string, action?: NotificationAction, subject?: string): void {
  const actionProps = action && { children: action.label, onClick: action.act };
  manager.add({
    id: subject,
    title: message,
    actionProps,
    timeout: action && WITH_ACTION_SHOWN_MS,
  });
}

/** Screen readers announce it at once. */
export function notifyOfError(error: unknown): void {
  const title = (
    <>
      {error instanceof ClipboardError ? error.message : getUserMessage(error)}
      <UpgradeHint error={error} />
    </>
  );
  manager.add({ title, type: "error", priority: "high" });
}

export function Notifications() {
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className="notifications">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className={`notification ${toast.type ?? ""}`}>
      <Toast.Title className="text" render={<p />} />
      <Toast.Action className="link" />
      <Toast.Close className="quiet" aria-label="Close">
        ×
      </Toast.Close>
    </Toast.Root>
  ));
}
